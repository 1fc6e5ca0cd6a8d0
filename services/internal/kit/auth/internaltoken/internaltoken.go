// Package internaltoken carries the principal between the services: a signed token for one audience, valid for
// at most five minutes. The audience is the service whose RPC is called.
package internaltoken

import (
	"cmp"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/fairlead/fairlead/services/internal/kit/cache"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

const (
	// lifetime and skew together are how long a token is accepted: five minutes.
	lifetime = 4 * time.Minute
	skew     = time.Minute // between the clocks of two machines
	// reuse is how long a minted token is sent again.
	reuse = 2 * time.Minute

	// issuer and typ keep other tokens out: those of clients have neither.
	issuer = "fairlead"
	typ    = "fairlead-internal+jwt"

	maxTokens = 20_000 // in each cache
	maxLength = 16 << 10
)

// Keys mints and verifies tokens. It is safe for concurrent use.
type Keys struct {
	signer   jose.Signer // nil: it only verifies
	seed     []byte      // of signer
	public   map[string]ed25519.PublicKey
	minted   *cache.Cache[string, string]
	verified *cache.Cache[string, verified]
}

// verified is the content of a token with a good signature.
type verified struct {
	p        principal.Principal
	audience string
}

// SeedSize is the size of a seed in bytes.
const SeedSize = ed25519.SeedSize

// New returns keys that mint with a seed, and verify what it or any of the public keys has signed. Without a
// seed they only verify.
func New(seed []byte, public ...ed25519.PublicKey) (*Keys, error) {
	k := &Keys{public: map[string]ed25519.PublicKey{}, minted: cache.New[string, string](maxTokens), verified: cache.New[string, verified](maxTokens)}
	if len(seed) > 0 {
		if len(seed) != SeedSize {
			return nil, fmt.Errorf("the seed has %d bytes instead of %d", len(seed), SeedSize)
		}
		k.seed = slices.Clone(seed)
		own := ed25519.NewKeyFromSeed(seed)
		mine, _ := own.Public().(ed25519.PublicKey)
		public = append(slices.Clone(public), mine)
		o := (&jose.SignerOptions{}).WithType(typ).WithHeader("kid", kid(mine))
		var err error
		if k.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: own}, o); err != nil {
			return nil, err
		}
	}
	for _, p := range public {
		if len(p) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("a public key has %d bytes instead of %d", len(p), ed25519.PublicKeySize)
		}
		k.public[kid(p)] = p
	}
	if len(k.public) == 0 {
		return nil, errors.New("there is no key")
	}
	return k, nil
}

// Derive returns a secret for another purpose, which all services with the seed have alike. Keys that only verify
// have none.
func (k *Keys) Derive(purpose string) []byte {
	if k == nil || len(k.seed) == 0 {
		return nil
	}
	h := hmac.New(sha256.New, k.seed)
	h.Write([]byte("fairlead secret: " + purpose))
	return h.Sum(nil)
}

// Random returns keys of this process alone.
func Random() *Keys {
	seed := make([]byte, SeedSize)
	_, _ = rand.Read(seed) // it never fails
	k, err := New(seed)
	if err != nil {
		panic(err) // the size is right
	}
	return k
}

// kid names a public key.
func kid(p ed25519.PublicKey) string {
	sum := sha256.Sum256(p)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// claims is the content of a token.
type claims struct {
	jwt.Claims
	Tenant     string         `json:"tenant"`
	Role       principal.Role `json:"role,omitempty"`
	Scopes     []string       `json:"scopes,omitempty"`
	Credential string         `json:"credential,omitempty"`
	// Ends is the end of the credential, in microseconds since 1970; zero: it does not end.
	Ends int64 `json:"credential_exp,omitempty"`
}

func (c claims) principal() principal.Principal {
	p := principal.Principal{Tenant: c.Tenant, User: c.Subject, Role: c.Role, Scopes: c.Scopes, Credential: c.Credential}
	if c.Ends != 0 {
		p.Expire = time.UnixMicro(c.Ends).UTC()
	}
	return p
}

// ends returns the claim for the end of a credential.
func ends(p principal.Principal) int64 {
	if p.Expire.IsZero() {
		return 0
	}
	return p.Expire.UnixMicro()
}

// Mint returns a token for a principal at an audience. It returns the same token for a while.
func (k *Keys) Mint(p principal.Principal, audience string) (string, error) {
	id := strings.Join(append([]string{audience, p.Tenant, p.User, p.Role.String(), p.Credential, strconv.FormatInt(ends(p), 10)}, p.Scopes...), "\x00")
	if token, ok := k.minted.Get(id); ok {
		return token, nil
	}
	if k.signer == nil {
		return "", errors.New("this service calls another one, and has only public keys; set auth.internal-key")
	}
	if err := p.Validate(); err != nil {
		return "", err
	}
	now := time.Now()
	token, err := jwt.Signed(k.signer).Claims(claims{
		Claims: jwt.Claims{
			Issuer: issuer, Subject: p.User, Audience: jwt.Audience{audience},
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(lifetime)),
		},
		Tenant: p.Tenant, Role: p.Role, Scopes: p.Scopes, Credential: p.Credential, Ends: ends(p),
	}).Serialize()
	if err != nil {
		return "", err
	}
	k.minted.Put(id, token, now.Add(reuse))
	return token, nil
}

// Verify returns the principal of a token for an audience. Its error says what is wrong and is for the log and
// for peers; it does not contain the token.
func (k *Keys) Verify(token, audience string) (principal.Principal, error) {
	v, ok := k.verified.Get(token)
	if !ok {
		var err error
		if v, err = k.verify(token); err != nil {
			return principal.Principal{}, err
		}
	}
	if v.audience != audience {
		return principal.Principal{}, fmt.Errorf("it is for the service %q, and this one is %q", v.audience, audience)
	}
	return v.p, nil
}

func (k *Keys) verify(token string) (verified, error) {
	if len(token) > maxLength {
		return verified{}, errors.New("it is too long")
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(parsed.Headers) != 1 {
		return verified{}, errors.New("it is not a token signed with EdDSA")
	}
	head := parsed.Headers[0]
	if t, _ := head.ExtraHeaders[jose.HeaderType].(string); t != typ {
		return verified{}, errors.New("it is not an internal token")
	}
	public, ok := k.public[head.KeyID]
	if !ok {
		return verified{}, errors.New("it is signed with a key that this service does not know; give all services the same auth.internal-key, or list its public key in auth.internal-public-keys")
	}
	var c claims
	if err := parsed.Claims(public, &c); err != nil {
		return verified{}, errors.New("its signature is wrong")
	}
	now := time.Now()
	switch {
	case c.Issuer != issuer || len(c.Audience) != 1:
		return verified{}, errors.New("it is not an internal token")
	case c.Expiry == nil || c.IssuedAt == nil || c.Expiry.Time().Sub(c.IssuedAt.Time()) > lifetime:
		return verified{}, errors.New("it is valid for too long")
	case now.After(c.Expiry.Time().Add(skew)):
		return verified{}, fmt.Errorf("it ended at %s, and it is %s here: check the clocks of the machines", c.Expiry.Time().UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case c.IssuedAt.Time().After(now.Add(skew)):
		return verified{}, fmt.Errorf("it was made at %s, and it is %s here: check the clocks of the machines", c.IssuedAt.Time().UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	v := verified{c.principal(), c.Audience[0]}
	if err := v.p.Validate(); err != nil {
		return verified{}, err
	}
	k.verified.Put(token, v, c.Expiry.Time().Add(skew))
	return v, nil
}

// audienceOf returns the service of an RPC's full name: session for /fairlead.session.v1.SessionService/GetTurn.
func audienceOf(method string) string {
	pkg, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	parts := strings.Split(pkg, ".")
	if len(parts) < 2 {
		return cmp.Or(pkg, "unknown")
	}
	return parts[1]
}
