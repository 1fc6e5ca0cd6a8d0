package doors

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// soon is how long a change of a user may take to reach tokens, and later how long it may take to end a stream.
const (
	soon  = 5 * time.Second
	later = 7 * time.Second
)

func TestAChangeOfAUserReachesTokensOfAnIssuer(t *testing.T) {
	prove.Only(t, "it waits three times for what is remembered of a user to end")
	w := build(t, "")
	w.keys["carl"] = w.issuer.token(w.issuer.claims("acme", "idp|carl", "admin"))
	status := func(method, path, body string) int {
		resp := w.send(t.Context(), t, w.keys["carl"], method, path, body)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	within := func(what string, limit time.Duration, reached func() bool) {
		t.Helper()
		begun := time.Now()
		for !reached() {
			if time.Since(begun) > limit {
				t.Fatalf("%s: not within %s", what, limit)
			}
			pause := time.NewTimer(50 * time.Millisecond)
			<-pause.C
		}
	}
	if got := status("GET", "/v1/audit", ""); got != http.StatusOK {
		t.Fatalf("a user that the tenant does not know, with the claims of an admin: %d", got)
	}
	w.do(t, "acme", "POST", "/v1/users?user_id=idp%7Ccarl", `{"role":"ROLE_USER"}`)
	within("the lower role", soon, func() bool { return status("GET", "/v1/audit", "") == http.StatusForbidden })
	session := field(t, w.do(t, "carl", "POST", "/v1/sessions", `{"agent":"agents/writer"}`), "name")

	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+w.keys["carl"])
	stream, err := sessionv1.NewSessionServiceClient(w.conn).StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: session})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				ended <- err
				return
			}
		}
	}()
	w.do(t, "acme", "DELETE", "/v1/users/idp%7Ccarl", "")
	begun := time.Now()
	within("the refusal", soon, func() bool { return status("GET", "/v1/"+session, "") == http.StatusUnauthorized })
	select {
	case err := <-ended:
		if apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != apierr.ReasonCredentialInvalid {
			t.Errorf("the stream ends with %v", err)
		}
	case <-time.After(later - time.Since(begun)):
		t.Error("the stream goes on")
	}
	w.do(t, "acme", "POST", "/v1/users?user_id=idp%7Ccarl", `{"role":"ROLE_VIEWER"}`)
	within("the user's return", soon, func() bool { return status("GET", "/v1/"+session, "") == http.StatusOK })
	if got := status("POST", "/v1/sessions", `{"agent":"agents/writer"}`); got != http.StatusForbidden {
		t.Errorf("a viewer makes a session: %d", got)
	}
}
