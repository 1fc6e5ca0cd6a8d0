package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// leeway is the difference between the clocks of an issuer and of this machine that is tolerated.
const leeway = time.Minute

// farFuture stands for every later end of a token, because timestamps of messages and databases reach less far.
var farFuture = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// asymmetric are the algorithms that an issuer may use. With a symmetric one the public key would sign.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// issuer verifies the tokens of one issuer.
type issuer struct {
	Issuer
	algorithms []jose.SignatureAlgorithm
	role       principal.Role // of users without a mapped one
	roles      map[string]principal.Role
	keys       *keySet
}

func newIssuer(c Issuer) (*issuer, error) {
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("auth.issuers: %w", err)
	}
	i := &issuer{Issuer: c, roles: map[string]principal.Role{}, keys: newKeySet(c)}
	for _, a := range c.Algorithms {
		i.algorithms = append(i.algorithms, jose.SignatureAlgorithm(a))
	}
	if c.Role != noRole {
		i.role, _ = principal.ParseRole(c.Role) // Validate has checked it
	}
	for value, name := range c.Roles {
		i.roles[value], _ = principal.ParseRole(name)
	}
	return i, nil
}

// issuerOf finds the issuer that a token names.
func (a *Authenticator) issuerOf(token string) (*issuer, error) {
	parsed, err := jwt.ParseSigned(token, asymmetric)
	if err != nil {
		return nil, errors.New("it is not signed with an asymmetric algorithm")
	}
	var c jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&c); err != nil {
		return nil, errors.New("its content is not that of a token")
	}
	i := a.issuers[c.Issuer]
	if i == nil {
		return nil, errors.New("its issuer is not configured")
	}
	return i, nil
}

// verify returns what the holder of a token may do at a resource, an address of this server, or elsewhere (""). Its errors
// do not contain the token.
func (i *issuer) verify(ctx context.Context, token, resource string) (r Resolved, err error) {
	parsed, err := jwt.ParseSigned(token, i.algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return r, errors.New("it is not signed with an algorithm that its issuer may use")
	}
	if t, ok := parsed.Headers[0].ExtraHeaders[jose.HeaderType].(string); ok && strings.HasPrefix(t, "fairlead-internal") {
		return r, errors.New("it is an internal token")
	}
	keys, err := i.keys.find(ctx, parsed.Headers[0].KeyID, parsed.Headers[0].Algorithm)
	if err != nil {
		return r, err
	}
	var registered jwt.Claims
	claims := map[string]any{}
	wrong := errors.New("its signature is wrong")
	for _, k := range keys {
		if wrong = parsed.Claims(k.Key, &registered, &claims); wrong == nil {
			break
		}
	}
	if wrong != nil {
		return r, errors.New("its signature is wrong")
	}
	if registered.Expiry == nil {
		return r, errors.New("it never ends")
	}
	expected := jwt.Expected{Issuer: i.Issuer.Issuer, AnyAudience: i.audiences(resource), Time: time.Now()}
	if err := registered.ValidateWithLeeway(expected, leeway); err != nil {
		return r, err
	}
	r.Principal, err = i.principal(claims)
	if r.Principal.Expire = registered.Expiry.Time(); r.Principal.Expire.After(farFuture) {
		r.Principal.Expire = farFuture
	}
	r.Expire = r.Principal.Expire.Add(leeway)
	return r, err
}

// audiences returns the values of the claim aud that are accepted at a resource.
func (i *issuer) audiences(resource string) (all jwt.Audience) {
	for _, name := range append([]string{i.Audience, resource}, i.Audiences...) {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// principal maps the claims of a token.
func (i *issuer) principal(claims map[string]any) (p principal.Principal, err error) {
	p.Tenant = i.Tenant
	if i.TenantClaim != "" {
		if p.Tenant, _ = claimAt(claims, i.TenantClaim).(string); p.Tenant == principal.Default().Tenant {
			return p, errors.New("its tenant is the one that manages tenants, which no claim can name; an issuer with `tenant` can")
		}
	}
	if p.User, _ = claimAt(claims, i.UserClaim).(string); p.User != "" {
		p.User = i.UserPrefix + p.User
	}
	if strings.Contains(p.User, "/") {
		return p, errors.New("its user has a slash, which no resource name can have")
	}
	p.Role = i.role
	for _, value := range texts(claimAt(claims, i.RoleClaim)) {
		p.Role = max(p.Role, i.roles[value])
	}
	if err := p.Validate(); err != nil {
		return p, err
	}
	if p.Role == principal.RoleNone {
		return p, errors.New("none of its roles is mapped")
	}
	return p, nil
}

// claimAt returns a claim by its name, or by a path with dots: realm_access.roles.
func claimAt(claims map[string]any, path string) any {
	if v, ok := claims[path]; ok || path == "" {
		return v
	}
	head, rest, ok := strings.Cut(path, ".")
	inner, isMap := claims[head].(map[string]any)
	if !ok || !isMap {
		return nil
	}
	return claimAt(inner, rest)
}

// texts returns the texts of a claim that is a list, or one text with spaces.
func texts(claim any) []string {
	switch c := claim.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		var all []string
		for _, v := range c {
			if s, ok := v.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// algorithmNames returns the names of the algorithms that may be configured.
func algorithmNames() []string {
	var names []string
	for _, a := range asymmetric {
		names = append(names, string(a))
	}
	return names
}

func knownAlgorithm(name string) bool { return slices.Contains(algorithmNames(), name) }
