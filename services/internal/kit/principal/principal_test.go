package principal_test

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// How a principal travels is tested in package rpc, over a connection.

func TestContext(t *testing.T) {
	if _, ok := principal.From(t.Context()); ok || principal.Tenant(t.Context()) != "" {
		t.Error("an empty context has a principal")
	}
	ctx := principal.With(principal.With(t.Context(), principal.Default()), principal.Principal{Tenant: "acme", User: "bob"})
	p, ok := principal.From(ctx)
	if !ok || p.User != "bob" || principal.Tenant(ctx) != "acme" {
		t.Errorf("got %+v, %v", p, ok)
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		p  principal.Principal
		ok bool
	}{
		"the default":                  {principal.Default(), true},
		"digits, dashes, underscores":  {principal.Principal{Tenant: "0a-b_c", User: "u"}, true},
		"a tenant of 63 characters":    {principal.Principal{Tenant: strings.Repeat("a", 63), User: "u"}, true},
		"a tenant of 64 characters":    {principal.Principal{Tenant: strings.Repeat("a", 64), User: "u"}, false},
		"no tenant":                    {principal.Principal{User: "u"}, false},
		"no user":                      {principal.Principal{Tenant: "t"}, false},
		"a tenant that climbs":         {principal.Principal{Tenant: "..", User: "u"}, false},
		"a tenant with a slash":        {principal.Principal{Tenant: "a/b", User: "u"}, false},
		"a tenant in upper case":       {principal.Principal{Tenant: "Acme", User: "u"}, false},
		"a tenant that looks a flag":   {principal.Principal{Tenant: "-rf", User: "u"}, false},
		"a tenant with a line break":   {principal.Principal{Tenant: "a\n", User: "u"}, false},
		"a role that does not exist":   {principal.Principal{Tenant: "t", User: "u", Role: 7}, false},
		"a service":                    {principal.Service("t", "u"), true},
		"a user with a NUL":            {principal.Principal{Tenant: "t", User: "a\x00b"}, false},
		"a user that is not UTF-8":     {principal.Principal{Tenant: "t", User: "\xff"}, false},
		"a user longer than 256 bytes": {principal.Principal{Tenant: "t", User: strings.Repeat("u", 257)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.p.Validate(); (err == nil) != c.ok {
				t.Errorf("Validate() = %v", err)
			}
		})
	}
}

func TestSees(t *testing.T) {
	for _, c := range []struct {
		role principal.Role
		user string
		want bool
	}{
		{principal.RoleViewer, "ann", true}, {principal.RoleUser, "ann", true}, {principal.RoleUser, "bob", false}, {principal.RoleUser, "", false},
		{principal.RoleOperator, "bob", true}, {principal.RoleAdmin, "bob", true}, {principal.RoleService, "bob", true},
	} {
		if got := (principal.Principal{Tenant: "t", User: "ann", Role: c.role}).Sees(c.user); got != c.want {
			t.Errorf("%s ann sees what belongs to %q: %v", c.role, c.user, got)
		}
	}
}

func TestRolesHaveNames(t *testing.T) {
	for _, name := range []string{"viewer", "user", "operator", "admin"} {
		if r, err := principal.ParseRole(name); err != nil || r.String() != name {
			t.Errorf("%s is %v, %v", name, r, err)
		}
	}
	for _, name := range []string{"service", "none", "", "Admin"} { // no credential has the role of a service
		if r, err := principal.ParseRole(name); err == nil {
			t.Errorf("%q is %v", name, r)
		}
	}
}

func TestAnEmptyListOfScopesIsNoLimit(t *testing.T) {
	limited := principal.Principal{Scopes: []string{"sessions.read"}}
	if !(principal.Principal{}).Allows("sessions.write") || !limited.Allows("sessions.read") || limited.Allows("sessions.write") || limited.Allows("") {
		t.Error("the scopes do not limit what they should")
	}
}
