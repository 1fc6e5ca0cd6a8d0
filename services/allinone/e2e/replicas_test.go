package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// opens returns what a key gets over REST and over gRPC.
func (s *system) opens(t *testing.T, secret string) string {
	t.Helper()
	rest := s.call(t, http.MethodGet, "/v1/sessions", "", bearer(secret)...)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secret)
	_, err := sessionv1.NewSessionServiceClient(s.dial(t, s.grpc)).ListSessions(ctx, &sessionv1.ListSessionsRequest{})
	return fmt.Sprint(rest.code, " ", status.Code(err))
}

var (
	shut = fmt.Sprint(http.StatusUnauthorized, " ", codes.Unauthenticated)
	ajar = fmt.Sprint(http.StatusOK, " ", codes.OK)
)

func TestAKeyBeginsAndEndsOnEveryReplica(t *testing.T) {
	prove.Only(t, "it waits until replicas have forgotten two keys")
	t.Parallel()
	database := pgtest.New(t)
	a, b := startServer(t, database), startServer(t, database)
	_, admin := a.key(t, "", `{"title":"first"}`)
	if got := b.opens(t, admin); got != ajar {
		t.Errorf("a key of the other replica gets %s at once", got)
	}
	until(t, "the other replica is closed, too", func() bool { return b.opens(t, "") == shut })
	if r := b.call(t, http.MethodPost, "/v1/users?user_id=ann", `{"role":"ROLE_OPERATOR"}`, bearer(admin)...); r.code != http.StatusOK {
		t.Fatalf("a user: %d %s", r.code, r.body)
	}
	for name, end := range map[string]func(key string) reply{
		"a revoked key": func(key string) reply {
			return a.call(t, http.MethodPost, "/v1/"+key+":revoke", "{}", bearer(admin)...)
		},
		"a key of a deleted user": func(string) reply {
			return a.call(t, http.MethodDelete, "/v1/users/ann", "", bearer(admin)...)
		},
	} {
		owner := map[bool]string{true: `"user":"users/ann",`}[name != "a revoked key"]
		key, secret := b.key(t, admin, `{`+owner+`"title":"second"}`)
		for _, s := range []*system{a, b} { // both remember it
			if got := s.opens(t, secret); got != ajar {
				t.Fatalf("%s gets %s before", name, got)
			}
		}
		if r := end(key); r.code != http.StatusOK {
			t.Fatalf("%s: %d %s", name, r.code, r.body)
		}
		begun := time.Now()
		for _, s := range []*system{a, b} {
			until(t, name+" is refused", func() bool { return s.opens(t, secret) == shut })
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s worked for %s", name, took)
		}
		if got := a.opens(t, admin) + b.opens(t, admin); got != ajar+ajar {
			t.Errorf("the admin's key gets %s", got)
		}
	}
}
