package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// idp is an issuer whose keys are in a file, so that its tokens can be checked on a bubble's clock.
type idp struct {
	key  *ecdsa.PrivateKey
	file string
}

func newIDP(t *testing.T) idp {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.Public(), KeyID: "k"}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return idp{k, file}
}

func (i idp) config() Config {
	return Config{Issuers: []Issuer{{Issuer: "https://idp.example", Audience: "fairlead", Tenant: "acme", JWKSFile: i.file, Role: "operator", UserPrefix: "idp:"}}}
}

// token returns a token of ann that ends after a time.
func (i idp) token(t *testing.T, ends time.Duration) string {
	t.Helper()
	return token(t, i.key, jose.ES256, "k", map[string]any{"iss": "https://idp.example", "aud": "fairlead", "sub": "ann", "exp": time.Now().Add(ends).Unix()})
}

func TestATokenIsBoundByWhatItsUserMayDoHere(t *testing.T) {
	i := newIDP(t)
	synctest.Test(t, func(t *testing.T) {
		h := newHolder()
		h.most = principal.RoleAdmin
		a, log := newAuthenticator(t, i.config(), h)
		secret := i.token(t, time.Hour)
		call := func(role principal.Role, want string) {
			t.Helper()
			p, err := a.Authenticate(t.Context(), secret)
			if apierr.Reason(err) != want || err == nil && (p.Role != role || p.User != "idp:ann" || p.Tenant != "acme" || !strings.HasPrefix(p.Credential, "tokens/")) {
				t.Errorf("%+v, %v; want %s %s", p, err, role, want)
			}
		}
		for range 3 {
			call(principal.RoleOperator, "")
		}
		if h.asked != 1 {
			t.Errorf("session was asked %d times", h.asked)
		}
		h.set(func(h *holder) { h.most = principal.RoleViewer })
		time.Sleep(keyTime) //nolint:forbidigo // the bubble's clock
		call(principal.RoleViewer, "")
		h.set(func(h *holder) { h.fail = ErrRefused })
		time.Sleep(keyTime) //nolint:forbidigo // the bubble's clock
		call(principal.RoleNone, apierr.ReasonCredentialInvalid)
		h.set(func(h *holder) { h.fail = errors.New("the database is away") })
		time.Sleep(keyTime) //nolint:forbidigo // the bubble's clock
		call(principal.RoleNone, apierr.ReasonCredentialUnverified)
		h.set(func(h *holder) { h.fail, h.most = nil, principal.RoleAdmin })
		call(principal.RoleOperator, "")
		time.Sleep(2 * time.Hour) //nolint:forbidigo // the bubble's clock
		call(principal.RoleNone, apierr.ReasonCredentialInvalid)
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has the token:\n%s", log)
		}
	})
}

func TestThePrincipalOfACredentialEndsWithIt(t *testing.T) {
	i := newIDP(t)
	h := newHolder()
	h.most = principal.RoleAdmin
	a, _ := newAuthenticator(t, i.config(), h)
	end := time.Now().Add(10 * time.Second).Truncate(time.Second)
	for name, c := range map[string]struct {
		exp  any
		want time.Time
	}{
		"in ten seconds":          {end.Unix(), end},
		"in the year 30,000":      {int64(884_541_351_600), farFuture},
		"in millions of years":    {int64(1) << 50, farFuture},
		"ten seconds, as a float": {float64(end.Unix()) + 0.5, end},
	} {
		secret := token(t, i.key, jose.ES256, "k", map[string]any{"iss": "https://idp.example", "aud": "fairlead", "sub": "ann", "exp": c.exp})
		p, err := a.Authenticate(t.Context(), secret)
		if err != nil || p.Expire.Sub(c.want).Abs() >= time.Second {
			t.Errorf("a token that ends %s: %v, %v", name, p.Expire, err)
		}
	}
}

func TestAStreamOfATokenEndsWithItsUserAndNotWithTheToken(t *testing.T) {
	i := newIDP(t)
	for name, c := range map[string]struct {
		change func(h *holder)
		want   string // the reason of the end; empty: the stream goes on
		code   codes.Code
	}{
		"nothing happens":      {func(*holder) {}, "", codes.OK},
		"session is away":      {func(h *holder) { h.fail = errors.New("away") }, "", codes.OK},
		"its user is promoted": {func(h *holder) { h.most = principal.RoleAdmin }, "", codes.OK},
		"its user is demoted":  {func(h *holder) { h.most = principal.RoleUser }, apierr.ReasonCredentialChanged, codes.Unavailable},
		"its user is deleted":  {func(h *holder) { h.fail = ErrRefused }, apierr.ReasonCredentialInvalid, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHolder()
				h.most = principal.RoleOperator
				a, _ := newAuthenticator(t, i.config(), h)
				ctx, stop := enter(t, a, http.Header{"Authorization": {"Bearer " + i.token(t, 2*time.Second)}})
				defer stop()
				h.set(c.change)
				if c.want == "" {
					time.Sleep(time.Hour) //nolint:forbidigo // the bubble's clock; the token has ended
					if ctx.Err() != nil {
						t.Errorf("the stream ends: %v", context.Cause(ctx))
					}
					return
				}
				time.Sleep(longest) //nolint:forbidigo // the bubble's clock
				synctest.Wait()
				if err := Ended(ctx); apierr.Reason(err) != c.want || apierr.Code(err) != c.code {
					t.Errorf("the stream ends with %v, %v", ctx.Err(), err)
				}
			})
		})
	}
}

func TestIssuersThatCouldNameTheSameUserNeedPrefixes(t *testing.T) {
	issuer := func(name, tenant, claim, prefix string) Issuer {
		return Issuer{Issuer: "https://" + name, Audience: "f", Tenant: tenant, TenantClaim: claim, UserPrefix: prefix}
	}
	for name, c := range map[string]struct {
		a, b Issuer
		ok   bool
	}{
		"two tenants":                    {issuer("a", "x", "", ""), issuer("b", "y", "", ""), true},
		"one tenant":                     {issuer("a", "x", "", ""), issuer("b", "x", "", ""), false},
		"the default tenant of both":     {issuer("a", "", "", ""), issuer("b", "default", "", ""), false},
		"one prefix":                     {issuer("a", "x", "", ""), issuer("b", "x", "", "b:"), false},
		"a prefix of the other's":        {issuer("a", "x", "", "o"), issuer("b", "x", "", "okta:"), false},
		"two prefixes":                   {issuer("a", "x", "", "a:"), issuer("b", "x", "", "b:"), true},
		"a claim and a tenant":           {issuer("a", "", "org", ""), issuer("b", "x", "", ""), false},
		"a claim and the tenant default": {issuer("a", "", "org", ""), issuer("b", "default", "", ""), true},
		"two claims":                     {issuer("a", "", "org", ""), issuer("b", "", "org", ""), false},
		"two claims with prefixes":       {issuer("a", "", "org", "a:"), issuer("b", "", "org", "b:"), true},
	} {
		err := Config{Issuers: []Issuer{c.a, c.b}}.Validate()
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "user-prefix") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
