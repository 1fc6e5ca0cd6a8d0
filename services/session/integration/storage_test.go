package integration

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func (p *peers) emptiedStorage() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.emptied, ", ")
}

func TestAUsersStorageIsDeletedOnceForARequest(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ann := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleOperator})
	for _, id := range []string{"one", "one", "two"} {
		_, err := sessionv1.NewUserServiceClient(f.conn).DeleteUserStorage(ann, &sessionv1.DeleteUserStorageRequest{Name: "users/ann/storage", RequestId: id})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := f.peers.emptiedStorage(); got != "acme/ann, acme/ann" {
		t.Errorf("sandbox deleted the storage of %s", got)
	}
	for name, want := range map[string]codes.Code{
		"users/bob/storage": codes.PermissionDenied, "users//storage": codes.InvalidArgument, "users/a/b/storage": codes.InvalidArgument,
	} {
		_, err := sessionv1.NewUserServiceClient(f.conn).DeleteUserStorage(ann, &sessionv1.DeleteUserStorageRequest{Name: name})
		if apierr.Code(err) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestAUsersStorageIsDeletedLaterWhereTheNodeIsAway(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	f.peers.setKeeping(true)
	_, err := sessionv1.NewUserServiceClient(f.conn).DeleteUserStorage(t.Context(), &sessionv1.DeleteUserStorageRequest{Name: "users/default/storage"})
	if err != nil {
		t.Fatal(err)
	}
	f.restart(t) // the job survives
	if got := f.peers.emptiedStorage(); got != "" {
		t.Fatalf("a node that is away deleted the storage of %s", got)
	}
	f.peers.setKeeping(false)
	eventually(t, "the storage is deleted", func() bool { return f.peers.emptiedStorage() == "default/default" })
}
