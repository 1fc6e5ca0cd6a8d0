package gateway_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
)

func TestADeliveryNeedsNoCredential(t *testing.T) {
	f, callers := &fake{}, knowing(t, auth.Config{Mode: auth.Required}, &oneKey{})
	srv := serveAs(t, f, gateway.DefaultConfig(), callers)
	conn, _ := serveGRPCAs(t, f, callers)
	body := "{\"a\": 1}\n " // its bytes are signed
	for name, c := range map[string]struct {
		path   string
		header http.Header
		want   *sessionv1.FireTriggerRequest
	}{
		"of GitHub": {
			"/v1/triggers/t1:fire",
			http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "X-Github-Delivery": {"d1"}, "X-Hub-Signature-256": {"sha256=ab"}},
			&sessionv1.FireTriggerRequest{Delivery: "d1", HubSignature: "sha256=ab", ContentType: "application/x-www-form-urlencoded"},
		},
		"of GitHub, with its event": {
			"/v1/triggers/t1:fire",
			http.Header{"X-Github-Event": {"issues"}, "X-Gitea-Event": {"gitea"}}, &sessionv1.FireTriggerRequest{Event: "issues"},
		},
		"of GitLab": {
			"/v1/triggers/t1:fire?secret=x",
			http.Header{"X-Gitlab-Event": {"Merge Request Hook"}}, &sessionv1.FireTriggerRequest{Event: "Merge Request Hook", Secret: "x"},
		},
		"of Bitbucket": {
			"/v1/triggers/t1:fire",
			http.Header{"X-Event-Key": {"repo:push"}}, &sessionv1.FireTriggerRequest{Event: "repo:push"},
		},
		"of CloudEvents": {
			"/v1/triggers/t1:fire",
			http.Header{"Ce-Type": {"com.example.made"}}, &sessionv1.FireTriggerRequest{Event: "com.example.made"},
		},
		"of the Standard Webhooks specification": {
			"/v1/triggers/t1:fire",
			http.Header{"Webhook-Id": {"m1"}, "Webhook-Timestamp": {"17"}, "Webhook-Signature": {"v1,x v1,y"}, "X-Fairlead-Delivery": {"other"}},
			&sessionv1.FireTriggerRequest{Delivery: "m1", WebhookTimestamp: "17", WebhookSignature: "v1,x v1,y"},
		},
		"with the secret in the address": {
			"/v1/triggers/t1:fire?secret=a%2Bb", http.Header{"X-Fairlead-Delivery": {"d2"}, "Authorization": {"Basic YTpi"}},
			&sessionv1.FireTriggerRequest{Delivery: "d2", Secret: "a+b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := do(t, srv, request{"POST", c.path, body, c.header})
			if got.code != http.StatusOK || strings.TrimSpace(got.body) != `{"turn":"sessions/s1/turns/t1"}` {
				t.Fatalf("%d %s", got.code, got.body)
			}
			want := proto.CloneOf(c.want)
			want.Name, want.Payload, want.ContentType = "triggers/t1", []byte(body), cmp.Or(want.GetContentType(), "application/json")
			m, _ := f.last()
			if diff := gocmp.Diff(want, m, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, r := range map[string]request{
		"another method":      {"GET", "/v1/triggers/t1:fire", "", nil},
		"another path":        {"POST", "/v1/triggers/t1:fired", "{}", nil},
		"the trigger itself":  {"GET", "/v1/triggers/t1", "", nil},
		"a path below":        {"POST", "/v1/triggers/t1/x:fire", "{}", nil},
		"a turn of a session": {"POST", "/v1/sessions/s1/turns", `{"text":"x"}`, nil},
	} {
		if got := do(t, srv, r); got.code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, got.code, got.body)
		}
	}
	if got := do(t, srv, request{"POST", "/v1/triggers/t1:fire", strings.Repeat("x", 256<<10+1), nil}); got.code != http.StatusRequestEntityTooLarge {
		t.Errorf("a delivery that is too large: %d %s", got.code, got.body)
	}
	if got := do(t, srv, request{"POST", "/v1/triggers/t1:fire?other=1", "{}", nil}); got.code != http.StatusBadRequest {
		t.Errorf("another parameter: %d %s", got.code, got.body)
	}
	fire := &sessionv1.FireTriggerRequest{Name: "triggers/t1", Payload: []byte("x")}
	if _, err := sessionv1.NewTriggerServiceClient(conn).FireTrigger(t.Context(), fire); err != nil {
		t.Errorf("over gRPC: %v", err)
	}
	if _, err := sessionv1.NewTriggerServiceClient(conn).GetTrigger(t.Context(), &sessionv1.GetTriggerRequest{Name: "triggers/t1"}); err == nil {
		t.Error("another RPC needs no credential over gRPC")
	}
	b, err := proto.Marshal(fire)
	if err != nil {
		t.Fatal(err)
	}
	_, trailer, _ := webCall(t, srv, "/fairlead.session.v1.TriggerService/FireTrigger", "application/grpc-web+proto", webFrame(0, b), "x-other", "1")
	if !strings.Contains(trailer, "grpc-status: 0") && !strings.Contains(trailer, "grpc-status:0") {
		t.Errorf("over gRPC-Web: %q", trailer)
	}
}
