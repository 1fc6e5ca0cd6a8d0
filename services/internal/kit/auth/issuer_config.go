package auth

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// noRole is the default role of an issuer whose users need a mapped one.
const noRole = "none"

// Issuer is an issuer of tokens, and how its claims are read. Its keys come from a file, an address, or OpenID Connect
// discovery at the issuer.
type Issuer struct {
	Issuer      string            `key:"issuer" help:"the claim iss, such as https://login.example.com"`
	Audience    string            `key:"audience" help:"what the claim aud must contain"`
	Audiences   []string          `key:"audiences" help:"further values of the claim aud, of which it may contain one instead, such as the addresses of MCP where public-url is not set"`
	Algorithms  []string          `key:"algorithms" help:"the algorithms that its tokens may be signed with; RS256, ES256 and EdDSA by default"`
	JWKSFile    string            `key:"jwks-file" help:"a file with its public keys, as a JSON Web Key Set"`
	JWKSURL     string            `key:"jwks-url" help:"the address of its public keys, where it has no OpenID Connect discovery"`
	Tenant      string            `key:"tenant" help:"the tenant of its users"`
	TenantClaim string            `key:"tenant-claim" help:"the claim with the tenant, instead of tenant"`
	UserClaim   string            `key:"user-claim" help:"the claim with the user; sub by default"`
	UserPrefix  string            `key:"user-prefix" help:"what begins the name of each of its users, such as okta:; needed where several issuers have users of one tenant, so that none can name another's user"`
	RoleClaim   string            `key:"role-claim" help:"the claim with the user's roles or groups, such as groups or realm_access.roles"`
	Roles       map[string]string `key:"roles" help:"which value of role-claim gives which role: viewer, user, operator or admin; the highest one counts"`
	Role        string            `key:"role" help:"the role of users to whom roles gives none: user by default; none refuses them"`
}

func (c Issuer) withDefaults() Issuer {
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{"RS256", "ES256", "EdDSA"}
	}
	c.UserClaim = cmp.Or(c.UserClaim, "sub")
	c.Role = cmp.Or(c.Role, principal.RoleUser.String())
	if c.TenantClaim == "" {
		c.Tenant = cmp.Or(c.Tenant, principal.Default().Tenant)
	}
	return c
}

// Validate reports every fault at once.
func (c Issuer) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := checkURL(c.Issuer); err != nil {
		fault("issuer: %w", err)
	}
	if c.Audience == "" && len(c.Audiences) == 0 {
		fault("audience: is empty; tokens that the issuer made for other servers would be accepted")
	}
	if slices.Contains(c.Audiences, "") {
		fault("audiences: one is empty")
	}
	for _, a := range c.Algorithms {
		if !knownAlgorithm(a) {
			fault("algorithms: %q is not one of %s", a, strings.Join(algorithmNames(), ", "))
		}
	}
	if c.JWKSURL != "" {
		if err := checkURL(c.JWKSURL); err != nil {
			fault("jwks-url: %w", err)
		}
	}
	if c.JWKSFile != "" && c.JWKSURL != "" {
		fault("jwks-file: is set besides jwks-url")
	}
	if c.Tenant != "" && c.TenantClaim != "" {
		fault("tenant: is set besides tenant-claim")
	}
	if c.Tenant != "" {
		if err := (principal.Principal{Tenant: c.Tenant, User: "u"}).Validate(); err != nil {
			fault("tenant: %w", err)
		}
	}
	if c.UserPrefix != "" && !prefixForm.MatchString(c.UserPrefix) {
		fault("user-prefix: %q is not up to 32 letters, digits and characters of . _ @ + | : -", c.UserPrefix)
	}
	for value, role := range c.Roles {
		if _, err := principal.ParseRole(role); err != nil {
			fault("roles: %s: %w", value, err)
		}
	}
	if len(c.Roles) > 0 && c.RoleClaim == "" {
		fault("role-claim: is empty, and roles has values of it")
	}
	if c.Role != "" && c.Role != noRole {
		if _, err := principal.ParseRole(c.Role); err != nil {
			fault("role: %w", err)
		}
	}
	return errors.Join(faults...)
}

var prefixForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+|:-]{0,31}$`)

// meet reports whether two issuers could name the same user of the same tenant.
func meet(c, d Issuer) bool {
	c, d = c.withDefaults(), d.withDefaults()
	apart := c.Tenant != d.Tenant
	if c.TenantClaim != "" || d.TenantClaim != "" { // a claim names every tenant but the default one
		apart = c.Tenant == principal.Default().Tenant || d.Tenant == principal.Default().Tenant
	}
	return !apart && (strings.HasPrefix(c.UserPrefix, d.UserPrefix) || strings.HasPrefix(d.UserPrefix, c.UserPrefix))
}

// checkURL refuses addresses that do not protect keys on their way.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not an address such as https://login.example.com", text)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return fmt.Errorf("%q is not https, which only addresses on loopback may do without", text)
	}
	return nil
}
