// Package principal identifies the acting user. A principal is in the context of every request, travels to
// peers in the metadata of every call, and is the only source of the tenant: no request names one.
package principal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Principal is the acting user: a user of a tenant, with the granted scopes.
type Principal struct {
	// Tenant owns what the request touches. It is part of keys and directory names and therefore restricted:
	// see Validate.
	Tenant string `json:"tenant"`
	// User names the person or program within the tenant.
	User string `json:"user"`
	// Scopes are the principal's permissions; nothing checks them until authentication
	// exists.
	Scopes []string `json:"scopes,omitempty"`
}

// Default returns the principal of every caller, as long as there is no
// authentication.
func Default() Principal { return Principal{Tenant: "default", User: "default"} }

var tenantForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Validate returns the fault of p: a tenant is 1 to 63 lower-case letters, digits, '-' and '_', beginning
// with a letter or digit (it becomes a directory name); a user is 1 to 256 bytes of UTF-8 without NUL, which
// no database column takes.
func (p Principal) Validate() error {
	if !tenantForm.MatchString(p.Tenant) {
		return fmt.Errorf("tenant %q is not 1 to 63 lower-case letters, digits, '-' and '_'", p.Tenant)
	}
	if p.User == "" || len(p.User) > 256 || !utf8.ValidString(p.User) || strings.Contains(p.User, "\x00") {
		return errors.New("user is not 1 to 256 bytes of UTF-8 without NUL")
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

// encode returns the form in the metadata.
func encode(p Principal) (string, error) {
	b, err := json.Marshal(p)
	return string(b), err
}

// maxEncoded bounds the work done on metadata, in bytes.
const maxEncoded = 8 << 10

func decode(s string) (Principal, error) {
	var p Principal
	if len(s) > maxEncoded {
		return p, errors.New("too long")
	}
	if err := json.Unmarshal([]byte(s), &p); err != nil {
		return p, errors.New("not a JSON object with tenant, user and scopes")
	}
	return p, p.Validate()
}
