package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// key makes an API key with the credential of an administrator; empty: of an open server.
func (s *system) key(t *testing.T, by, body string) (name, secret string) {
	t.Helper()
	var made struct {
		Key    struct{ Name string }
		Secret string
	}
	path := "/v1/keys"
	if by == "" {
		path += "?first_key=true"
	}
	r := s.call(t, http.MethodPost, path, body, bearer(by)...)
	if err := json.Unmarshal([]byte(r.body), &made); err != nil || made.Secret == "" {
		t.Fatalf("POST /v1/keys: %d %s", r.code, r.body)
	}
	return made.Key.Name, made.Secret
}

func bearer(secret string) []string {
	if secret == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + secret}
}

func TestTheFirstKeyClosesEveryDoor(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		open := s.session(t, "assistant")
		_, admin := s.key(t, "", `{"title":"first"}`)
		rpcs := func(secret string) (answers [2]codes.Code) {
			ctx := t.Context()
			if secret != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret)
			}
			_, err := sessionv1.NewSessionServiceClient(s.dial(t, s.grpc)).GetSession(ctx, &sessionv1.GetSessionRequest{Name: open})
			_, err2 := toolsv1.NewToolServiceClient(s.dial(t, s.toolsGRPC)).GetTool(ctx, &toolsv1.GetToolRequest{Name: "tools/Read"})
			return [2]codes.Code{status.Code(err), status.Code(err2)}
		}
		begun := time.Now()
		until(t, "nothing answers without a key", func() bool {
			return s.call(t, http.MethodGet, "/v1/"+open, "").code == http.StatusUnauthorized && rpcs("") == [2]codes.Code{codes.Unauthenticated, codes.Unauthenticated}
		})
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("that took %s", took)
		}
		if r := s.call(t, http.MethodGet, "/v1/"+open, "", bearer(admin)...); r.code != http.StatusOK || rpcs(admin) != [2]codes.Code{} {
			t.Errorf("the administrator: %d %s, %v", r.code, r.body, rpcs(admin))
		}
		s.keepsUsersApart(t, admin, open)
		s.hides(t, admin)
	})
}

// keepsUsersApart checks what the key of another user may do, and that it ends.
func (s *system) keepsUsersApart(t *testing.T, admin, foreign string) {
	t.Helper()
	if r := s.call(t, http.MethodPost, "/v1/users?userId=ann", `{"role":"ROLE_USER"}`, bearer(admin)...); r.code != http.StatusOK {
		t.Fatalf("POST /v1/users: %d %s", r.code, r.body)
	}
	name, ann := s.key(t, admin, `{"user":"users/ann","title":"of ann"}`)
	missing := strings.Replace(foreign, "sessions/", "sessions/0", 1)
	theirs, none := s.call(t, http.MethodGet, "/v1/"+foreign, "", bearer(ann)...), s.call(t, http.MethodGet, "/v1/"+missing, "", bearer(ann)...)
	if theirs.code != http.StatusNotFound || none.code != http.StatusNotFound || theirs.body != strings.ReplaceAll(none.body, missing, foreign) {
		t.Errorf("another user's session: %d %s; none: %d %s", theirs.code, theirs.body, none.code, none.body)
	}
	if r := s.call(t, http.MethodPost, "/v1/webhooks", `{"url":"https://example.com/x"}`, bearer(ann)...); r.code != http.StatusForbidden || !strings.Contains(r.body, "ROLE_REQUIRED") {
		t.Errorf("what needs an operator: %d %s", r.code, r.body)
	}
	if r := s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"assistant"}`, bearer(ann)...); r.code != http.StatusOK {
		t.Errorf("a session of ann: %d %s", r.code, r.body)
	}
	if r := s.call(t, http.MethodPost, "/v1/"+name+":revoke", "{}", bearer(admin)...); r.code != http.StatusOK {
		t.Fatalf("revoke: %d %s", r.code, r.body)
	}
	begun := time.Now()
	until(t, "the revoked key is refused", func() bool {
		return s.call(t, http.MethodGet, "/v1/sessions", "", bearer(ann)...).code == http.StatusUnauthorized
	})
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the revoked key worked for %s", took)
	}
	s.hides(t, ann)
}

// hides checks that no log has a secret.
func (s *system) hides(t *testing.T, secret string) {
	t.Helper()
	for _, p := range s.processes {
		text, err := os.ReadFile(p.log.Name())
		if err != nil || len(text) == 0 {
			t.Errorf("the log of %s: %v", p.name, err)
		}
		if strings.Contains(string(text), secret) {
			t.Errorf("the log of %s has a key", p.name)
		}
	}
}
