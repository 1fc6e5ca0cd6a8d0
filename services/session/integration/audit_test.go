package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// audited returns the audit log as lines: user, method, resource, code and reason.
func (f *fixture) audited(ctx context.Context, t *testing.T) []string {
	t.Helper()
	all, err := sessionv1.NewAuditServiceClient(f.conn).ListAuditEntries(ctx, &sessionv1.ListAuditEntriesRequest{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range all.Entries {
		if e.RequestId == "" && e.Code != "PERMISSION_DENIED" || e.Time == nil || e.Client == "" {
			t.Errorf("entry %v", e)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprint(bareUser(e.User), " ", e.Method[strings.LastIndex(e.Method[:strings.LastIndex(e.Method, ".")], ".")+1:], " ", e.Resource, " ", e.Code, " ", e.Reason)))
	}
	return lines
}

func bareUser(name string) string { return strings.TrimPrefix(name, "users/") }

func TestChangesAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	root, ann, bob := as(t.Context(), "root", principal.RoleAdmin), as(t.Context(), "ann", principal.RoleUser), as(t.Context(), "bob", principal.RoleUser)
	people := sessionv1.NewIdentityServiceClient(f.conn)
	if _, err := people.CreateUser(root, &sessionv1.CreateUserRequest{UserId: "zoe"}); err != nil {
		t.Fatal(err)
	}
	// What changes identities is there before its answer.
	if got := f.audited(root, t); !slices.Equal(got, []string{"root IdentityService.CreateUser users/zoe OK"}) {
		t.Fatalf("%q", got)
	}
	made, err := people.CreateKey(root, &sessionv1.CreateKeyRequest{FirstKey: true})
	if err == nil {
		t.Fatalf("root is no user, and has the key %v", made.Key)
	}
	if _, err := people.CreateUser(ann, &sessionv1.CreateUserRequest{UserId: "me2"}); err == nil {
		t.Fatal("a user made a user")
	}
	s := f.owned(ann, t)
	if _, err := f.GetSession(ann, &sessionv1.GetSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateTurn(bob, &sessionv1.CreateTurnRequest{Parent: s, Text: "a secret text"}); err == nil {
		t.Fatal("bob wrote to ann's session")
	}
	// Deletions are written before their answers, and all others with them.
	if _, err := f.DeleteSession(ann, &sessionv1.DeleteSessionRequest{Name: s}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"root IdentityService.CreateUser users/zoe OK",
		"root IdentityService.CreateKey  NOT_FOUND USER_NOT_FOUND",
		"ann IdentityService.CreateUser  PERMISSION_DENIED ROLE_REQUIRED",
		"ann SessionService.CreateSession " + s + " OK",
		"ann SessionService.RunTurn " + s + " OK",
		"bob SessionService.CreateTurn " + s + " NOT_FOUND SESSION_NOT_FOUND",
		"ann SessionService.DeleteSession " + s + " OK",
	}
	if got := f.audited(root, t); !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if _, err := sessionv1.NewAuditServiceClient(f.conn).ListAuditEntries(ann, &sessionv1.ListAuditEntriesRequest{}); err == nil {
		t.Error("a user reads the audit log")
	}
}

func TestADeliveryIsInTheAuditLogWithoutAUser(t *testing.T) {
	t.Parallel()
	f := start(t, talk)
	admin := as(t.Context(), "root", principal.RoleAdmin)
	s := f.trigger(admin, t, &sessionv1.Trigger{Agent: "agents/tester", Text: "Look."})
	if _, err := s.github("d", "x"); err != nil {
		t.Fatal(err)
	}
	forged := *s
	forged.secret = "whsec_x"
	if _, err := forged.github("e", "x"); err == nil {
		t.Fatal("a forged delivery is taken")
	}
	all, err := sessionv1.NewAuditServiceClient(f.conn).ListAuditEntries(admin, &sessionv1.ListAuditEntriesRequest{})
	if err != nil || len(all.Entries) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	e := all.Entries[1]
	if e.User != "" || e.Credential != s.name || e.Resource != s.name || e.Code != "OK" || e.Method != "fairlead.session.v1.TriggerService.FireTrigger" || e.Client == "" {
		t.Errorf("%v", e)
	}
}
