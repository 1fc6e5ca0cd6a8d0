// Package principal identifies the acting user. A principal is in the context of every request, travels to
// peers in an internal token with every call, and is the only source of the tenant: no request names one.
package principal

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Role is what a principal may do in its tenant. Each role may do what the ones before it may do. The
// numbers are those of the enum fairlead.common.v1.Role.
type Role int32

// Roles, in ascending order.
const (
	RoleNone     Role = 0
	RoleViewer   Role = 1
	RoleUser     Role = 2
	RoleOperator Role = 3
	RoleAdmin    Role = 4
	RoleService  Role = 10 // a service of Fairlead itself; no credential of a client has it
)

var roleNames = map[Role]string{
	RoleNone: "none", RoleViewer: "viewer", RoleUser: "user", RoleOperator: "operator", RoleAdmin: "admin", RoleService: "service",
}

// String returns the role's name, in lower case.
func (r Role) String() string {
	if name, ok := roleNames[r]; ok {
		return name
	}
	return fmt.Sprintf("role %d", int32(r))
}

// ParseRole returns the role of a client with a name: viewer, user, operator or admin.
func ParseRole(name string) (Role, error) {
	for r := RoleViewer; r <= RoleAdmin; r++ {
		if roleNames[r] == name {
			return r, nil
		}
	}
	return RoleNone, fmt.Errorf("%q is not a role; the roles are viewer, user, operator and admin", name)
}

// Principal is the acting user: a user of a tenant, with a role and perhaps limited to
// scopes.
type Principal struct {
	// Tenant owns what the request touches. It is part of keys and directory names and therefore restricted:
	// see Validate.
	Tenant string
	// User names the person or program within the tenant.
	User string
	// Role is what the user may do. RoleNone may do nothing.
	Role Role
	// Scopes limit the credential to the RPCs that need one of them; an empty list is no limit.
	Scopes []string
	// Credential identifies the API key or token, for audit and limits. It is never the secret.
	Credential string
	// Expire is when the credential ends; zero: it does not end. A key that the principal makes ends no later.
	Expire time.Time
}

// Default returns the principal of every caller while no authentication is
// configured.
func Default() Principal { return Principal{Tenant: "default", User: "default", Role: RoleAdmin} }

// Service returns a service of Fairlead that acts for a user of a tenant.
func Service(tenant, user string) Principal {
	return Principal{Tenant: tenant, User: user, Role: RoleService}
}

// Sees reports whether p may see what belongs to a user of its tenant: its own, or everything for an
// operator.
func (p Principal) Sees(user string) bool { return p.User == user || p.Role >= RoleOperator }

// Allows reports whether p may use a scope.
func (p Principal) Allows(scope string) bool {
	return len(p.Scopes) == 0 || slices.Contains(p.Scopes, scope)
}

var tenantForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Validate returns the fault of p: a tenant is 1 to 63 lower-case letters, digits, '-' and '_', beginning
// with a letter or digit (it becomes a directory name); a user is 1 to 256 bytes of UTF-8 without NUL, which
// no database column takes; the role is one of the constants.
func (p Principal) Validate() error {
	if !tenantForm.MatchString(p.Tenant) {
		return fmt.Errorf("tenant %q is not 1 to 63 lower-case letters, digits, '-' and '_'", p.Tenant)
	}
	if p.User == "" || len(p.User) > 256 || !utf8.ValidString(p.User) || strings.Contains(p.User, "\x00") {
		return errors.New("user is not 1 to 256 bytes of UTF-8 without NUL")
	}
	if _, ok := roleNames[p.Role]; !ok {
		return fmt.Errorf("%s does not exist", p.Role)
	}
	return nil
}

type key struct{}

// With returns a context with the principal p.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns the principal of ctx, and whether it has one.
func From(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(key{}).(Principal)
	return p, ok
}

// Tenant returns the tenant of ctx, or "" without a principal; stores refuse an empty tenant.
func Tenant(ctx context.Context) string {
	p, _ := From(ctx)
	return p.Tenant
}
