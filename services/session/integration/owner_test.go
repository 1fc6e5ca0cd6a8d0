package integration

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func as(ctx context.Context, user string, role principal.Role) context.Context {
	return principal.With(ctx, principal.Principal{Tenant: "default", User: user, Role: role})
}

// owned makes a session of a user, in which a message can be found.
func (f *fixture) owned(ctx context.Context, t *testing.T) string {
	t.Helper()
	r, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{RequestId: "the-same"})
	if err != nil {
		t.Fatal(err)
	}
	f.turn(ctx, t, r.Session.Name, "hello")
	return r.Session.Name
}

func TestSessionsAreTheirUsers(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ann, bob, olga := as(t.Context(), "ann", principal.RoleUser), as(t.Context(), "bob", principal.RoleUser), as(t.Context(), "olga", principal.RoleOperator)
	anns, bobs := f.owned(ann, t), f.owned(bob, t)
	if anns == bobs {
		t.Fatal("a request id of one user answered another's request")
	}
	fork, err := f.ForkSession(olga, &sessionv1.ForkSessionRequest{Name: anns})
	if err != nil || fork.Session.User != "users/olga" {
		t.Fatalf("a fork is of the user that makes it: %v, %v", fork, err)
	}
	for _, c := range []struct {
		name, user string
		ctx        context.Context
		want       map[string]string
	}{
		{"ann", "", ann, map[string]string{anns: "users/ann"}},
		{"bob", "users/me", bob, map[string]string{bobs: "users/bob"}},
		{"an operator", "", olga, map[string]string{anns: "users/ann", bobs: "users/bob", fork.Session.Name: "users/olga"}},
		{"an operator of one", "users/bob", olga, map[string]string{bobs: "users/bob"}},
	} {
		all, err := f.ListSessions(c.ctx, &sessionv1.ListSessionsRequest{User: c.user})
		if err != nil || len(all.Sessions) != len(c.want) {
			t.Errorf("%s: %v, %v", c.name, all, err)
			continue
		}
		for _, s := range all.Sessions {
			if c.want[s.Name] != s.User {
				t.Errorf("%s sees %s of %s", c.name, s.Name, s.User)
			}
		}
	}
	for name, err := range map[string]error{
		"get":      second(f.GetSession(bob, &sessionv1.GetSessionRequest{Name: anns})),
		"turn":     second(f.CreateTurn(bob, &sessionv1.CreateTurnRequest{Parent: anns, Text: "x"})),
		"messages": second(f.ListMessages(bob, &sessionv1.ListMessagesRequest{Parent: anns})),
		"fork":     second(f.ForkSession(bob, &sessionv1.ForkSessionRequest{Name: anns})),
		"search":   second(f.SearchMessages(bob, &sessionv1.SearchMessagesRequest{Query: "hello", Session: anns})),
	} {
		if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
			t.Errorf("%s of another user's: %v", name, err)
		}
	}
	if all, err := f.ListSessions(bob, &sessionv1.ListSessionsRequest{User: "users/ann"}); apierr.Code(err) != codes.PermissionDenied {
		t.Errorf("another user's list: %v, %v", all, err)
	}
}

func TestADeletionIsRepeatedByItsUser(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ann, bob := as(t.Context(), "ann", principal.RoleUser), as(t.Context(), "bob", principal.RoleUser)
	anns := f.owned(ann, t)
	remove := func(ctx context.Context, request string) error {
		return second(f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: anns, RequestId: request}))
	}
	foreign := remove(bob, "bobs")
	for range 2 {
		if err := remove(ann, "anns"); err != nil {
			t.Fatal(err)
		}
	}
	missing := remove(bob, "bobs")
	if apierr.Code(foreign) != codes.NotFound || foreign.Error() != missing.Error() {
		t.Errorf("another user's session: %v; none: %v", foreign, missing)
	}
}

func TestTheIDOfADeletedSessionStaysItsUsers(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ann, bob := as(t.Context(), "ann", principal.RoleUser), as(t.Context(), "bob", principal.RoleUser)
	mine := &sessionv1.CreateSessionRequest{SessionId: "pr-1", RequestId: "once"}
	if _, err := f.CreateSession(ann, mine); err != nil {
		t.Fatal(err)
	}
	if _, err := f.DeleteSession(ann, &sessionv1.DeleteSessionRequest{Name: "sessions/pr-1"}); err != nil {
		t.Fatal(err)
	}
	if got, err := f.CreateSession(bob, &sessionv1.CreateSessionRequest{SessionId: "pr-1"}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_EXISTS) {
		t.Errorf("another user's session of this id: %v, %v", got, err)
	}
	if got, err := f.CreateSession(ann, mine); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("the repeated request: %v, %v", got, err)
	}
	if _, err := f.CreateSession(ann, &sessionv1.CreateSessionRequest{SessionId: "pr-1"}); err != nil {
		t.Errorf("the same user's: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
