package doors

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"time"
)

const (
	issuerName = "https://login.example.com"
	operators  = "https://operators.example.com" // the issuer for the tenant that manages tenants
	audience   = "fairlead"
)

// issuer signs tokens, good and bad ones.
type issuer struct {
	public ed25519.PublicKey
	key    ed25519.PrivateKey
}

func newIssuer() *issuer {
	public, key, _ := ed25519.GenerateKey(nil) // it never fails
	return &issuer{public, key}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// keySet returns the public key as the server reads it.
func (i *issuer) keySet() []byte {
	b, _ := json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "OKP", "crv": "Ed25519", "kid": "k1", "use": "sig", "alg": "EdDSA", "x": encode(i.public),
	}}})
	return b
}

// root returns a token for an admin of the tenant that manages tenants.
func (i *issuer) root() string {
	c := i.claims("", "root", "admin")
	c["iss"] = operators
	return i.token(c)
}

// claims returns those of a good token.
func (i *issuer) claims(tenant, user, role string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": issuerName, "aud": audience, "sub": user, "tenant": tenant, "roles": []string{role},
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

func (i *issuer) token(claims map[string]any) string {
	return assemble("EdDSA", claims, func(b []byte) []byte { return ed25519.Sign(i.key, b) })
}

func assemble(alg string, claims map[string]any, sign func([]byte) []byte) string {
	head, _ := json.Marshal(map[string]string{"alg": alg, "typ": "JWT", "kid": "k1"})
	body, _ := json.Marshal(claims)
	signed := encode(head) + "." + encode(body)
	return signed + "." + encode(sign([]byte(signed)))
}

// bad returns tokens for an admin of a tenant that no server may take, by what is wrong.
func (i *issuer) bad(tenant string) map[string]string {
	with := func(changed map[string]any) map[string]any {
		c := i.claims(tenant, "admin", "admin")
		maps.Copy(c, changed)
		return c
	}
	now := time.Now()
	good := with(nil)
	hs256 := func(secret []byte) string {
		return assemble("HS256", good, func(b []byte) []byte {
			m := hmac.New(sha256.New, secret)
			m.Write(b)
			return m.Sum(nil)
		})
	}
	endless := with(nil)
	delete(endless, "exp")
	return map[string]string{
		"an expired token":                          i.token(with(map[string]any{"exp": now.Add(-time.Hour).Unix()})),
		"a token that never ends":                   i.token(endless),
		"a token of tomorrow":                       i.token(with(map[string]any{"nbf": now.Add(24 * time.Hour).Unix(), "exp": now.Add(25 * time.Hour).Unix()})),
		"a token of another issuer":                 i.token(with(map[string]any{"iss": "https://login.example.org"})),
		"a token for another audience":              i.token(with(map[string]any{"aud": "payroll"})),
		"a token for the tenant of operators":       i.token(with(map[string]any{"tenant": "default"})),
		"a token without a role":                    i.token(with(map[string]any{"roles": []string{}})),
		"a token with the algorithm none":           assemble("none", good, func([]byte) []byte { return nil }),
		"a token signed with the public key":        hs256(i.public),
		"a token signed with the published key set": hs256(i.keySet()),
		"a token of another key":                    assemble("EdDSA", good, func(b []byte) []byte { return ed25519.Sign(newIssuer().key, b) }),
		"a token changed after it was signed":       tampered(i.token(with(map[string]any{"roles": []string{"user"}})), good),
	}
}

// tampered returns a token with other claims and the old signature.
func tampered(token string, claims map[string]any) string {
	at := len(token) - 86 // an Ed25519 signature as base64
	return assemble("EdDSA", claims, func([]byte) []byte {
		s, _ := base64.RawURLEncoding.DecodeString(token[at:])
		return s
	})
}
