package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// attaches attaches a process with a key, and returns the first answer. Its stream ends with the test.
func (s *system) attaches(t *testing.T, secret, runtime string) (grpc.BidiStreamingClient[sessionv1.AttachRequest, sessionv1.AttachResponse], error) {
	t.Helper()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secret))
	t.Cleanup(cancel)
	stream, err := sessionv1.NewRuntimeServiceClient(s.dial(t, s.grpc)).Attach(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Open{Open: &sessionv1.AttachOpen{Runtime: runtime, MaxTurns: 1}}}) // Recv tells of an error
	_, err = stream.Recv()
	return stream, err
}

// attachedProcesses is how many processes are attached for a runtime.
func (s *system) attachedProcesses(t *testing.T, secret, runtime string) (n int) {
	t.Helper()
	var can struct {
		Runtimes []struct {
			Name      string
			Processes int
		}
	}
	r := s.call(t, http.MethodGet, "/v1/capabilities", "", bearer(secret)...)
	if err := json.Unmarshal([]byte(r.body), &can); err != nil {
		t.Fatalf("%d %s", r.code, r.body)
	}
	for _, c := range can.Runtimes {
		if c.Name == "attached:"+runtime {
			n += c.Processes
		}
	}
	return n
}

// An attached process needs an operator's key with its scope, and is attached no longer than the key lives: also one that
// reads nothing, and one that says that it lives until the end.
func TestAnAttachedProcessEndsWithItsKey(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		_, admin := s.key(t, "", `{"title":"first"}`)
		for user, role := range map[string]string{"ann": "ROLE_USER", "olga": "ROLE_OPERATOR"} {
			if r := s.call(t, http.MethodPost, "/v1/users?userId="+user, `{"role":"`+role+`"}`, bearer(admin)...); r.code != http.StatusOK {
				t.Fatalf("POST /v1/users: %d %s", r.code, r.body)
			}
		}
		_, ann := s.key(t, admin, `{"user":"users/ann","title":"of ann"}`)
		_, narrow := s.key(t, admin, `{"user":"users/olga","title":"without the scope","scopes":["sessions.write"]}`)
		name, olga := s.key(t, admin, `{"user":"users/olga","title":"of a process"}`)
		for why, c := range map[string]struct {
			secret string
			code   codes.Code
		}{"ROLE_REQUIRED": {ann, codes.PermissionDenied}, "SCOPE_REQUIRED": {narrow, codes.PermissionDenied}, "UNAUTHENTICATED": {"fl_wrong", codes.Unauthenticated}} {
			until(t, "the key is refused: "+why, func() bool { // a new server learns of its first key within seconds
				_, err := s.attaches(t, c.secret, "mine")
				return status.Code(err) == c.code
			})
		}
		reads, err := s.attaches(t, olga, "mine")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.attaches(t, olga, "mine"); err != nil { // reads nothing more
			t.Fatal(err)
		}
		until(t, "both are attached", func() bool { return s.attachedProcesses(t, admin, "mine") == 2 })
		if r := s.call(t, http.MethodPost, "/v1/"+name+":revoke", "{}", bearer(admin)...); r.code != http.StatusOK {
			t.Fatalf("revoke: %d %s", r.code, r.body)
		}
		for {
			r, err := reads.Recv()
			if r.GetAlive() != nil {
				_ = reads.Send(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Alive{Alive: &sessionv1.AttachAlive{}}})
				continue
			}
			if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), olga) {
				t.Errorf("the stream goes on with %v, or ends with %v", r, err)
			}
			break
		}
		until(t, "none is attached", func() bool { return s.attachedProcesses(t, admin, "mine") == 0 })
		if _, err := s.attaches(t, olga, "mine"); status.Code(err) != codes.Unauthenticated {
			t.Errorf("the revoked key gets %v", err)
		}
		s.hides(t, olga)
	})
}
