package doors

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// power is what the holder of a credential may do.
type power int

const (
	nothing   power = iota
	elsewhere       // in another tenant
	own             // with what is another user's of the same tenant
	role            // what its role allows, which is not enough
	scope           // what its scopes allow
)

// credential is what a caller sends.
type credential struct {
	name   string
	header string // Authorization
	token  string // an internal one, in the metadata that services use among themselves
	may    power
	role   principal.Role
	scopes []string
}

// callers returns the credentials of users.
func (w *world) callers() []credential {
	of := func(who string, may power, r principal.Role, scopes ...string) credential {
		return credential{name: who, header: "Bearer " + w.keys[who], may: may, role: r, scopes: scopes}
	}
	token := w.issuer.token(w.issuer.claims("rival", "eve", "admin"))
	w.secrets = append(w.secrets, token)
	return []credential{
		{name: "a token of rival's admin", header: "Bearer " + token, may: elsewhere, role: principal.RoleAdmin},
		of("rival", elsewhere, principal.RoleAdmin), of("ben", elsewhere, principal.RoleUser),
		of("root", elsewhere, principal.RoleAdmin),
		of("vic", role, principal.RoleViewer), of("bob", role, principal.RoleUser), of("oda", role, principal.RoleOperator),
		of("a key for agents", scope, principal.RoleAdmin, "agents.read"), of("a key for tools", scope, principal.RoleAdmin, "tools.read"),
		of("bob", own, principal.RoleUser), of("vic", own, principal.RoleViewer),
	}
}

// outcome is what a call must end with.
type outcome int

const (
	unknown      outcome = iota // UNAUTHENTICATED
	denied                      // PERMISSION_DENIED, for the role or the scope
	hidden                      // as if the resource did not exist
	sameAsNone                  // whatever it is, also for a resource that does not exist
	unspecified                 // anything that leaks nothing
	notAttempted                // the call is no attack
)

// outcomeOf returns what a call of an RPC with a credential must end with.
func outcomeOf(c credential, d door, kind string) outcome {
	switch {
	case d.rule.Open:
		return sameAsNone // no credential counts, and the request has no secret
	case c.may == nothing:
		return unknown
	case c.role < d.rule.Role:
		return denied
	case c.may == role:
		return notAttempted
	case c.may == scope:
		if slices.Contains(c.scopes, d.rule.Scope) {
			return notAttempted
		}
		return denied
	}
	switch {
	case kind == "" || kind == "tools/*":
		return unspecified
	case c.name == "root" && kind == "tenants/*":
		return notAttempted // it manages the tenants
	case c.may == elsewhere && strings.HasPrefix(kind, "users/"):
		return sameAsNone // the tenant's own user can have the same name
	case c.may == own && slices.Contains(common, kind):
		return notAttempted
	}
	return hidden
}

// common are the kinds of resources that every user of a tenant may see.
var common = []string{"agents/*", "agents/*/versions/*", "environments/*", "models/*", "profiles/*", "tenants/*"}

// kind returns the kind of resource that a request must name, or "".
func (d door) kind() string {
	paths := []access.Path{d.rule.Session, d.rule.User}
	for _, name := range []protoreflect.Name{"name", "parent"} {
		if f := d.rpc.Input().Fields().ByName(name); f != nil {
			paths = append(paths, access.Path{f})
		}
	}
	for _, p := range paths {
		if len(p) == 0 {
			continue
		}
		f := p[len(p)-1]
		if kind := kindOf(pattern(f)); kind != "" && !optional(f) {
			return kind
		}
	}
	return ""
}

func optional(f protoreflect.FieldDescriptor) bool {
	return strings.HasPrefix(pattern(f), "^$|") || strings.HasSuffix(pattern(f), ")?$")
}
