package tenancy

import (
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
)

func TestPeersAskWhatAUserMayDoAtMost(t *testing.T) {
	p := newPeople(t)
	p.acme()
	keys := auth.RemoteKeys(rpctest.Dial(t, func(r grpc.ServiceRegistrar) { sessionv1.RegisterKeyServiceServer(r, p.KeyServer) }))
	most := func(tenant, user string, want principal.Role) {
		t.Helper()
		if got, err := keys.MostRole(t.Context(), tenant, user); err != nil || got != want {
			t.Errorf("%s in %s: %s, %v", user, tenant, got, err)
		}
	}
	root := p.as("root", principal.RoleAdmin)
	most("acme", "olga", principal.RoleOperator)
	most("acme", "auth0|unknown", principal.RoleAdmin)
	if got, err := keys.MostRole(t.Context(), "globex", "olga"); !errors.Is(err, auth.ErrRefused) {
		t.Errorf("a tenant that does not exist: %s, %v", got, err)
	}
	viewer := commonv1.Role_ROLE_VIEWER
	p.must(p.UpdateUser(root, &sessionv1.UpdateUserRequest{Name: "users/olga", Role: &viewer}))
	most("acme", "olga", principal.RoleViewer)
	p.must(p.DeleteUser(root, &sessionv1.DeleteUserRequest{Name: "users/olga"}))
	if got, err := keys.MostRole(t.Context(), "acme", "olga"); !errors.Is(err, auth.ErrRefused) {
		t.Errorf("a deleted user: %s, %v", got, err)
	}
	_, err := p.ResolveUser(t.Context(), &sessionv1.ResolveUserRequest{Tenant: "acme", User: "olga"})
	wantReason(t, "a deleted user", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_USER_REFUSED)
}
