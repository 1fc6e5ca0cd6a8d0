package tenancy

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/session/internal/apikey"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

// people is a server with a tenant acme: root is an admin, olga an operator, ann and bob are users.
type people struct {
	*IdentityServer
	*KeyServer
	t     *testing.T
	store store.Store
	first string // the key of acme's root
}

var migrated = sqlitetest.NewTemplate(sqlite.Migrations())

func newPeople(t *testing.T) *people {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	file := filepath.Join(t.TempDir(), "session.db")
	migrated.Copy(t, file)
	st, err := sqlite.Open(t.Context(), file, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return &people{&IdentityServer{Config: &Config{Store: st, Log: log}}, KeyService(apikey.NewResolver(st, log), st), t, st, ""}
}

func (p *people) acme() {
	p.t.Helper()
	made, err := p.CreateTenant(principal.With(p.t.Context(), principal.Default()), &sessionv1.CreateTenantRequest{TenantId: "acme", AdminId: "root", FirstKey: true})
	p.must(made, err)
	p.first = made.Key.Name
	for id, role := range map[string]commonv1.Role{"olga": commonv1.Role_ROLE_OPERATOR, "ann": commonv1.Role_ROLE_USER, "bob": commonv1.Role_ROLE_USER} {
		p.must(p.CreateUser(p.as("root", principal.RoleAdmin), &sessionv1.CreateUserRequest{UserId: id, User: &sessionv1.User{Role: role}}))
	}
}

func (p *people) must(_ proto.Message, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *people) as(user string, role principal.Role, scopes ...string) context.Context {
	return principal.With(p.t.Context(), principal.Principal{Tenant: "acme", User: user, Role: role, Scopes: scopes, Credential: p.first})
}

func (p *people) key(ctx context.Context, k *sessionv1.Key) *sessionv1.CreateKeyResponse {
	p.t.Helper()
	made, err := p.CreateKey(ctx, &sessionv1.CreateKeyRequest{Key: k})
	if err != nil {
		p.t.Fatal(err)
	}
	return made
}

func (p *people) resolve(secret string) (*sessionv1.ResolveKeyResponse, error) {
	sum := sha256.Sum256([]byte(secret))
	return p.ResolveKey(p.t.Context(), &sessionv1.ResolveKeyRequest{Sha256: sum[:]})
}

func wantReason(t *testing.T, what string, err error, code codes.Code, reason sessionv1.ErrorReason) {
	t.Helper()
	if apierr.Code(err) != code || !apierr.Is(err, reason) {
		t.Errorf("%s: %v, not %v %v", what, err, code, reason)
	}
}

func TestAKeyIsItsUserUntilItIsRevoked(t *testing.T) {
	p := newPeople(t)
	p.acme()
	ann := p.as("ann", principal.RoleUser)
	made := p.key(ann, &sessionv1.Key{Title: "laptop", Scopes: []string{"sessions.read"}})
	if !strings.HasPrefix(made.Secret, "fl_") || len(made.Secret) != 3+43 {
		t.Fatalf("the secret has %d characters", len(made.Secret))
	}
	got, err := p.resolve(made.Secret)
	want := &sessionv1.ResolveKeyResponse{Tenant: "acme", User: "ann", Role: commonv1.Role_ROLE_USER, Scopes: []string{"sessions.read"}, Credential: made.Key.Name}
	if err != nil || !proto.Equal(got, want) {
		t.Fatalf("resolved %v, %v", got, err)
	}
	if _, err := p.RevokeKey(p.as("bob", principal.RoleUser), &sessionv1.RevokeKeyRequest{Name: made.Key.Name}); true {
		wantReason(t, "another user revokes it", err, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_KEY_NOT_FOUND)
	}
	if _, err := p.resolve(made.Secret); err != nil {
		t.Errorf("after another user tried to revoke it: %v", err)
	}
	revoked, err := p.RevokeKey(ann, &sessionv1.RevokeKeyRequest{Name: made.Key.Name})
	if err != nil || revoked.Key.RevokeTime == nil {
		t.Fatal(revoked, err)
	}
	_, err = p.resolve(made.Secret)
	wantReason(t, "revoked", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_KEY_REFUSED)
	_, err = p.resolve("fl_none")
	wantReason(t, "none", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_KEY_REFUSED)
}

func TestARepeatedRequestForAKeyHasNoSecret(t *testing.T) {
	p := newPeople(t)
	p.acme()
	r := &sessionv1.CreateKeyRequest{RequestId: "r"}
	first, err := p.CreateKey(p.as("ann", principal.RoleUser), r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.CreateKey(p.as("ann", principal.RoleUser), r)
	if err != nil || again.Secret != "" || again.Key.Name != first.Key.Name {
		t.Errorf("%v, %v", again, err)
	}
}

func TestAKeyCanDoNoMoreThanItsCreator(t *testing.T) {
	p := newPeople(t)
	p.acme()
	for name, c := range map[string]struct {
		ctx    context.Context
		key    *sessionv1.Key
		code   codes.Code
		reason sessionv1.ErrorReason
	}{
		"a role above the caller's": {p.as("ann", principal.RoleUser), &sessionv1.Key{Role: commonv1.Role_ROLE_OPERATOR}, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE},
		"a role above the user's":   {p.as("root", principal.RoleAdmin), &sessionv1.Key{User: "users/ann", Role: commonv1.Role_ROLE_ADMIN}, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE},
		"an operator's for another": {p.as("olga", principal.RoleOperator), &sessionv1.Key{User: "users/ann"}, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_OTHER_USER},
		"no scopes":                 {p.as("ann", principal.RoleUser, "keys.write"), &sessionv1.Key{}, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE},
		"another scope":             {p.as("ann", principal.RoleUser, "keys.write"), &sessionv1.Key{Scopes: []string{"sessions.read"}}, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE},
		"a user that is not there":  {p.as("root", principal.RoleAdmin), &sessionv1.Key{User: "users/zoe"}, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_USER_NOT_FOUND},
	} {
		_, err := p.CreateKey(c.ctx, &sessionv1.CreateKeyRequest{Key: c.key})
		wantReason(t, name, err, c.code, c.reason)
	}
	for name, k := range map[string]*sessionv1.Key{
		"key.scopes":      {Scopes: []string{"sessions.none"}},
		"key.expire_time": {ExpireTime: timestamppb.New(time.Now().Add(-time.Second))},
	} {
		_, err := p.CreateKey(p.as("ann", principal.RoleUser), &sessionv1.CreateKeyRequest{Key: k})
		if apierr.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := p.ListKeys(p.as("root", principal.RoleAdmin), &sessionv1.ListKeysRequest{}); err != nil || len(all.Keys) != 1 {
		t.Errorf("bad requests left %v, %v", all, err)
	}
	made := p.key(p.as("root", principal.RoleAdmin), &sessionv1.Key{User: "users/ann"})
	if made.Key.Role != commonv1.Role_ROLE_USER || made.Key.User != "users/ann" || made.Key.Creator != "users/root" {
		t.Errorf("an admin's key for a user: %v", made.Key)
	}
}

func TestAKeyMakesNoneThatEndsLater(t *testing.T) {
	p := newPeople(t)
	p.acme()
	p.KeysOutliveToken = time.Hour // counts for tokens only
	end := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	ends := p.key(p.as("ann", principal.RoleUser), &sessionv1.Key{ExpireTime: timestamppb.New(end)})
	holder := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleUser, Credential: ends.Key.Name, Expire: end})
	_, err := p.CreateKey(holder, &sessionv1.CreateKeyRequest{Key: &sessionv1.Key{ExpireTime: timestamppb.New(end.Add(time.Minute))}})
	wantReason(t, "with a later end", err, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE)
	if made := p.key(holder, nil); !made.Key.ExpireTime.AsTime().Equal(end) {
		t.Errorf("without an end it ends at %v, not %v", made.Key.ExpireTime.AsTime(), end)
	}
	p.key(holder, &sessionv1.Key{ExpireTime: timestamppb.New(end.Add(-time.Minute))})
}

func TestKeysAreSeenByTheirUserAndAdmins(t *testing.T) {
	p := newPeople(t)
	p.acme()
	ann := p.key(p.as("ann", principal.RoleUser), nil).Key.Name
	bob := p.key(p.as("bob", principal.RoleUser), nil).Key.Name
	names := func(ctx context.Context, user string) (out []string) {
		t.Helper()
		all, err := p.ListKeys(ctx, &sessionv1.ListKeysRequest{User: user})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range all.Keys {
			out = append(out, k.Name)
		}
		return out
	}
	for _, c := range []struct {
		ctx  context.Context
		user string
		want int
	}{
		{p.as("ann", principal.RoleUser), "", 1},
		{p.as("ann", principal.RoleUser), "users/me", 1},
		{p.as("ann", principal.RoleUser), "users/bob", 0},
		{p.as("olga", principal.RoleOperator), "", 0},
		{p.as("root", principal.RoleAdmin), "", 3},
		{p.as("root", principal.RoleAdmin), "users/bob", 1},
		{principal.With(t.Context(), principal.Default()), "", 0},
	} {
		if got := names(c.ctx, c.user); len(got) != c.want {
			t.Errorf("%v of %q: %v", request.Caller(c.ctx), c.user, got)
		}
	}
	for name, ctx := range map[string]context.Context{"bob": p.as("bob", principal.RoleUser), "olga": p.as("olga", principal.RoleOperator), "default": principal.With(t.Context(), principal.Default())} {
		_, err := p.GetKey(ctx, &sessionv1.GetKeyRequest{Name: ann})
		wantReason(t, name, err, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_KEY_NOT_FOUND)
	}
	if k, err := p.GetKey(p.as("root", principal.RoleAdmin), &sessionv1.GetKeyRequest{Name: bob}); err != nil || k.Key.User != "users/bob" {
		t.Error(k, err)
	}
}

func TestTheFirstKeyClosesTheServer(t *testing.T) {
	p := newPeople(t)
	open := principal.With(t.Context(), principal.Default())
	got, err := p.ResolveKey(t.Context(), &sessionv1.ResolveKeyRequest{})
	if err != nil || got.Tenant != "default" || got.User != "default" || got.Role != commonv1.Role_ROLE_ADMIN {
		t.Fatal(got, err)
	}
	for name, r := range map[string]*sessionv1.CreateKeyRequest{
		"an admin's": {}, "an admin's by its role": {Key: &sessionv1.Key{Role: commonv1.Role_ROLE_ADMIN}}, "a user's": {Key: &sessionv1.Key{User: "users/default", Role: commonv1.Role_ROLE_USER}},
	} {
		_, err := p.CreateKey(open, r)
		wantReason(t, name, err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FIRST_KEY)
		if !strings.Contains(err.Error(), "fairlead admin init") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = p.CreateTenant(open, &sessionv1.CreateTenantRequest{TenantId: "acme"})
	wantReason(t, "a tenant", err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FIRST_KEY)
	if _, err := p.ResolveKey(t.Context(), &sessionv1.ResolveKeyRequest{}); err != nil {
		t.Fatalf("a refused call closes the server: %v", err)
	}
	for name, k := range map[string]*sessionv1.Key{
		"a user's": {Role: commonv1.Role_ROLE_USER}, "with scopes": {Scopes: []string{"sessions.read"}}, "with an end": {ExpireTime: timestamppb.New(time.Now().Add(time.Hour))},
	} {
		_, err := p.CreateKey(open, &sessionv1.CreateKeyRequest{Key: k, FirstKey: true})
		wantReason(t, name, err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FIRST_KEY)
	}
	made, err := p.CreateKey(open, &sessionv1.CreateKeyRequest{FirstKey: true})
	p.must(made, err)
	_, err = p.ResolveKey(t.Context(), &sessionv1.ResolveKeyRequest{})
	wantReason(t, "after the first key", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_CREDENTIAL_MISSING)
	p.key(open, &sessionv1.Key{Scopes: []string{"sessions.read"}}) // a server that needs no credential has keys, too
	p.must(p.RevokeKey(open, &sessionv1.RevokeKeyRequest{Name: made.Key.Name}))
	_, err = p.ResolveKey(t.Context(), &sessionv1.ResolveKeyRequest{})
	wantReason(t, "after the last key", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_CREDENTIAL_MISSING)
}

func TestATokenMakesTheFirstKeyOfAServer(t *testing.T) { // such a server is not open
	for name, k := range map[string]*sessionv1.Key{"an admin's": nil, "with scopes": {Scopes: []string{"sessions.read"}}} {
		p := newPeople(t)
		token := principal.Default()
		token.Credential, token.Expire = "tokens/x", time.Now().Add(time.Hour)
		if _, err := p.CreateKey(principal.With(t.Context(), token), &sessionv1.CreateKeyRequest{Key: k}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAKeyEndsWithTheTokenThatMakesIt(t *testing.T) {
	p := newPeople(t)
	p.acme()
	end := time.Now().Add(10 * time.Second).Truncate(time.Microsecond)
	token := principal.Principal{Tenant: "acme", User: "root", Role: principal.RoleAdmin, Credential: "tokens/x", Expire: end}
	holder := principal.With(t.Context(), token)
	token.Tenant = "default"
	system := principal.With(t.Context(), token)
	for name, c := range map[string]struct {
		outlive   time.Duration
		end, want *timestamppb.Timestamp // without want it is refused
	}{
		"without an end":                      {0, nil, timestamppb.New(end)},
		"an hour later":                       {0, timestamppb.New(end.Add(time.Hour)), nil},
		"a moment later":                      {0, timestamppb.New(end.Add(time.Microsecond)), nil},
		"in the year 9999":                    {0, timestamppb.New(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), nil},
		"with the token":                      {0, timestamppb.New(end), timestamppb.New(end)},
		"before":                              {0, timestamppb.New(end.Add(-time.Second)), timestamppb.New(end.Add(-time.Second))},
		"as late as the operator allows":      {time.Hour, timestamppb.New(end.Add(time.Hour)), timestamppb.New(end.Add(time.Hour))},
		"later than the operator allows":      {time.Hour, timestamppb.New(end.Add(61 * time.Minute)), nil},
		"without an end, and more is allowed": {time.Hour, nil, timestamppb.New(end.Add(time.Hour))},
	} {
		p.KeysOutliveToken = c.outlive
		made, err := p.CreateKey(holder, &sessionv1.CreateKeyRequest{Key: &sessionv1.Key{ExpireTime: c.end}})
		if c.want == nil {
			wantReason(t, name, err, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE)
		} else if err != nil || !proto.Equal(made.Key.ExpireTime, c.want) {
			t.Errorf("%s: %v, %v", name, made, err)
		}
	}
	p.KeysOutliveToken = time.Minute
	made, err := p.CreateTenant(system, &sessionv1.CreateTenantRequest{TenantId: "globex"})
	if err != nil || !made.Key.ExpireTime.AsTime().Equal(end.Add(time.Minute)) {
		t.Errorf("the first key of a tenant: %v, %v", made, err)
	}
}

func TestARevokedKeyEndsWhatItHasMade(t *testing.T) {
	p := newPeople(t)
	p.acme()
	by := func(user string, role principal.Role, key *sessionv1.CreateKeyResponse) context.Context {
		return principal.With(t.Context(), principal.Principal{Tenant: "acme", User: user, Role: role, Credential: key.Key.Name})
	}
	root := p.key(p.as("root", principal.RoleAdmin), nil)
	ann := p.key(by("root", principal.RoleAdmin, root), &sessionv1.Key{User: "users/ann"})
	annToo := p.key(by("ann", principal.RoleUser, ann), nil)
	bob := p.key(p.as("root", principal.RoleAdmin), &sessionv1.Key{User: "users/bob"})
	if ann.Key.Parent != root.Key.Name || annToo.Key.Parent != ann.Key.Name {
		t.Errorf("parents %q and %q", ann.Key.Parent, annToo.Key.Parent)
	}
	want := []string{ann.Key.Name, annToo.Key.Name}
	slices.Sort(want)
	for range 2 { // a repeated request has the same answer
		got, err := p.RevokeKey(p.as("root", principal.RoleAdmin), &sessionv1.RevokeKeyRequest{Name: root.Key.Name, RequestId: "r"})
		if err != nil || !slices.Equal(got.Key.RevokedKeys, want) {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if got, err := p.GetKey(p.as("root", principal.RoleAdmin), &sessionv1.GetKeyRequest{Name: root.Key.Name}); err != nil || !slices.Equal(got.Key.RevokedKeys, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, k := range []*sessionv1.CreateKeyResponse{root, ann, annToo} {
		_, err := p.resolve(k.Secret)
		wantReason(t, k.Key.Name, err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_KEY_REFUSED)
	}
	if _, err := p.resolve(bob.Secret); err != nil {
		t.Errorf("a key that another key has made: %v", err)
	}
	_, err := p.CreateKey(by("ann", principal.RoleUser, ann), &sessionv1.CreateKeyRequest{}) // replicas take a revoked key for some seconds
	wantReason(t, "a key of a revoked one", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_PARENT_REVOKED)
	gone, err := p.DeleteUser(p.as("root", principal.RoleAdmin), &sessionv1.DeleteUserRequest{Name: "users/bob"})
	if err != nil || !slices.Equal(gone.RevokedKeys, []string{bob.Key.Name}) {
		t.Errorf("%v, %v", gone, err)
	}
}

func TestADeletedUserTakesNoKeyOfTheCallerAlong(t *testing.T) {
	p := newPeople(t)
	p.acme()
	by := func(user string, key *sessionv1.CreateKeyResponse) context.Context {
		return principal.With(t.Context(), principal.Principal{Tenant: "acme", User: user, Role: principal.RoleAdmin, Credential: key.Key.Name})
	}
	token := principal.With(t.Context(), principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleAdmin, Credential: "tokens/x"})
	ofAnn := p.key(p.as("root", principal.RoleAdmin), &sessionv1.Key{User: "users/ann"})
	byKey := p.key(by("ann", ofAnn), &sessionv1.Key{User: "users/bob"})
	byOther := p.key(by("bob", byKey), &sessionv1.Key{User: "users/bob"})
	byToken := p.key(token, &sessionv1.Key{User: "users/bob"})
	for _, key := range []*sessionv1.CreateKeyResponse{byKey, byOther, byToken} {
		_, err := p.DeleteUser(by("bob", key), &sessionv1.DeleteUserRequest{Name: "users/ann"})
		wantReason(t, key.Key.Name, err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_OWN_USER)
	}
	gone, err := p.DeleteUser(p.as("root", principal.RoleAdmin), &sessionv1.DeleteUserRequest{Name: "users/ann"})
	if err != nil || len(gone.RevokedKeys) != 4 {
		t.Errorf("%v, %v", gone, err)
	}
	_, err = p.resolve(byToken.Secret)
	wantReason(t, "a key by a token of the user", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_KEY_REFUSED)
}

func TestATenantThatDoesNotExistHasNoUsers(t *testing.T) {
	p := newPeople(t)
	p.acme()
	for _, c := range []struct {
		tenant, user string
		ok           bool
	}{{"acme", "never-seen", true}, {"default", "never-seen", true}, {"acme", "ann", true}, {"globex", "ann", false}, {"acme2", "root", false}, {"acm", "root", false}} {
		_, err := p.ResolveUser(t.Context(), &sessionv1.ResolveUserRequest{Tenant: c.tenant, User: c.user})
		if (err == nil) != c.ok {
			t.Errorf("%s of %s: %v", c.user, c.tenant, err)
		}
		if !c.ok {
			wantReason(t, c.tenant, err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_TENANT_REFUSED)
		}
	}
}

func TestTenantsAreManagedByTheSystemTenant(t *testing.T) {
	p := newPeople(t)
	p.acme()
	root, system := p.as("root", principal.RoleAdmin), principal.With(t.Context(), principal.Default())
	_, err := p.CreateTenant(root, &sessionv1.CreateTenantRequest{TenantId: "globex"})
	wantReason(t, "create", err, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_NOT_SYSTEM_TENANT)
	_, err = p.ListTenants(root, &sessionv1.ListTenantsRequest{})
	wantReason(t, "list", err, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_NOT_SYSTEM_TENANT)
	_, other := p.GetTenant(root, &sessionv1.GetTenantRequest{Name: "tenants/default"})
	wantReason(t, "get", other, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_TENANT_NOT_FOUND)
	if own, err := p.GetTenant(root, &sessionv1.GetTenantRequest{Name: "tenants/acme"}); err != nil || own.Tenant.Name != "tenants/acme" {
		t.Error(own, err)
	}
	made, err := p.CreateTenant(system, &sessionv1.CreateTenantRequest{TenantId: "globex", RequestId: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.resolve(made.Secret); err != nil || got.Tenant != "globex" || got.User != "admin" || got.Role != commonv1.Role_ROLE_ADMIN {
		t.Errorf("%v, %v", got, err)
	}
	if again, err := p.CreateTenant(system, &sessionv1.CreateTenantRequest{TenantId: "globex", RequestId: "r"}); err != nil || again.Secret != "" || again.Key.Name != made.Key.Name {
		t.Error(again, err)
	}
	_, err = p.CreateTenant(system, &sessionv1.CreateTenantRequest{TenantId: "globex"})
	wantReason(t, "again", err, codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS)
}

func TestATenantKeepsAnAdmin(t *testing.T) {
	p := newPeople(t)
	p.acme()
	root := p.as("root", principal.RoleAdmin)
	for _, name := range []string{"users/root", "users/me"} {
		_, err := p.DeleteUser(root, &sessionv1.DeleteUserRequest{Name: name})
		wantReason(t, name, err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_OWN_USER)
		_, err = p.UpdateUser(root, &sessionv1.UpdateUserRequest{Name: name, Role: commonv1.Role_ROLE_VIEWER.Enum()})
		wantReason(t, name, err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_OWN_USER)
	}
	secret := p.key(p.as("ann", principal.RoleUser), nil).Secret
	u, err := p.UpdateUser(root, &sessionv1.UpdateUserRequest{Name: "users/ann", Role: commonv1.Role_ROLE_VIEWER.Enum()})
	if err != nil || u.User.Role != commonv1.Role_ROLE_VIEWER || u.User.Title != "" {
		t.Error(u, err)
	}
	if got, err := p.resolve(secret); err != nil || got.Role != commonv1.Role_ROLE_VIEWER {
		t.Errorf("the key of a viewer: %v, %v", got, err)
	}
	p.must(p.DeleteUser(root, &sessionv1.DeleteUserRequest{Name: "users/ann"}))
	_, err = p.resolve(secret)
	wantReason(t, "the key of a deleted user", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_KEY_REFUSED)
	_, err = p.DeleteUser(root, &sessionv1.DeleteUserRequest{Name: "users/ann"})
	wantReason(t, "again", err, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_USER_NOT_FOUND)
}
