package internaltoken

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

var zoe = principal.Principal{Tenant: "acme", User: "Zoë", Role: principal.RoleUser, Scopes: []string{"a.read", "b.read"}, Credential: "keys/k1"}

func mint(t *testing.T, k *Keys, p principal.Principal, audience string) string {
	t.Helper()
	token, err := k.Mint(p, audience)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestATokenCarriesThePrincipal(t *testing.T) {
	k := Random()
	soon, late := zoe, zoe
	soon.Expire, late.Expire = time.Now().Add(time.Second).Truncate(time.Microsecond).UTC(), time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 2 { // the second time it comes from the caches
		for _, want := range []principal.Principal{zoe, soon, late} {
			got, err := k.Verify(mint(t, k, want, "session"), "session")
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		}
	}
	if mint(t, k, zoe, "session") == mint(t, k, zoe, "tools") || mint(t, k, zoe, "session") == mint(t, k, principal.Service("acme", "Zoë"), "session") {
		t.Error("two principals or audiences share a token")
	}
}

func TestATokenLivesForFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := Random()
		first := mint(t, k, zoe, "session")
		time.Sleep(reuse - time.Second) //nolint:forbidigo // the bubble's clock
		if mint(t, k, zoe, "session") != first {
			t.Error("a fresh token was made too early")
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // the bubble's clock
		if mint(t, k, zoe, "session") == first {
			t.Error("the token is sent for too long")
		}
		time.Sleep(5*time.Minute - reuse - 2*time.Second) //nolint:forbidigo // the bubble's clock
		if _, err := k.Verify(first, "session"); err != nil {
			t.Errorf("after five minutes: %v", err)
		}
		time.Sleep(2 * time.Second)                          //nolint:forbidigo // the bubble's clock
		for _, verifier := range []*Keys{k, mustVerify(k)} { // with and without a cached answer
			if _, err := verifier.Verify(first, "session"); err == nil || !strings.Contains(err.Error(), "ended") {
				t.Errorf("after more than five minutes: %v", err)
			}
		}
	})
}

// mustVerify returns fresh keys that verify what k has signed.
func mustVerify(k *Keys) *Keys {
	var public []ed25519.PublicKey
	for _, p := range k.public {
		public = append(public, p)
	}
	v, err := New(nil, public...)
	if err != nil {
		panic(err)
	}
	return v
}

func TestPublicKeysOnlyVerifyAndRotate(t *testing.T) {
	before, after := Random(), Random()
	var public []ed25519.PublicKey
	for _, k := range []*Keys{before, after} {
		for _, p := range k.public {
			public = append(public, p)
		}
	}
	both, err := New(nil, public...)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []*Keys{before, after} {
		if _, err := both.Verify(mint(t, k, zoe, "sandbox"), "sandbox"); err != nil {
			t.Error(err)
		}
	}
	if _, err := both.Mint(zoe, "sandbox"); err == nil || !strings.Contains(err.Error(), "internal-key") {
		t.Errorf("it mints: %v", err)
	}
	if _, err := after.Verify(mint(t, before, zoe, "sandbox"), "sandbox"); err == nil || !strings.Contains(err.Error(), "does not know") {
		t.Errorf("another signer: %v", err)
	}
}

func TestOtherTokensAreRefused(t *testing.T) {
	seed := make([]byte, SeedSize)
	mine := ed25519.NewKeyFromSeed(seed)
	k, err := New(seed)
	if err != nil {
		t.Fatal(err)
	}
	public := mine.Public().(ed25519.PublicKey)
	now := time.Now()
	good := claims{Claims: jwt.Claims{
		Issuer: issuer, Subject: "ann", Audience: jwt.Audience{"session"}, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Minute)),
	}, Tenant: "acme", Role: principal.RoleAdmin}
	sign := func(key any, algorithm jose.SignatureAlgorithm, kind, id string, change func(c *claims)) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithType(jose.ContentType(kind)).WithHeader("kid", id))
		if err != nil {
			t.Fatal(err)
		}
		c := good
		if change != nil {
			change(&c)
		}
		token, err := jwt.Signed(signer).Claims(c).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Verify(sign(mine, jose.EdDSA, typ, kid(public), nil), "session"); err != nil {
		t.Fatalf("a token that is right: %v", err)
	}
	none := "eyJhbGciOiJub25lIiwidHlwIjoiZmFpcmxlYWQtaW50ZXJuYWwrand0In0." + strings.Split(sign(mine, jose.EdDSA, typ, kid(public), nil), ".")[1] + "."
	for name, c := range map[string]struct{ token, want string }{
		"for another service":                {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) { c.Audience = jwt.Audience{"tools"} }), `for the service "tools"`},
		"for two services":                   {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) { c.Audience = jwt.Audience{"session", "tools"} }), "not an internal token"},
		"of another issuer":                  {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) { c.Issuer = "https://idp.example" }), "not an internal token"},
		"of a client, with the same key":     {sign(mine, jose.EdDSA, "JWT", kid(public), nil), "not an internal token"},
		"by another signer":                  {sign(other, jose.EdDSA, typ, "other", nil), "does not know"},
		"by another signer, as this one":     {sign(other, jose.EdDSA, typ, kid(public), nil), "signature"},
		"signed with the public key as text": {sign([]byte(public), jose.HS256, typ, kid(public), nil), "EdDSA"},
		"without a signature":                {none, "EdDSA"},
		"that has ended": {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) {
			c.IssuedAt, c.Expiry = jwt.NewNumericDate(now.Add(-6*time.Minute)), jwt.NewNumericDate(now.Add(-2*time.Minute))
		}), "ended"},
		"from the future": {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) {
			c.IssuedAt, c.Expiry = jwt.NewNumericDate(now.Add(2*time.Minute)), jwt.NewNumericDate(now.Add(3*time.Minute))
		}), "made at"},
		"that lives too long":             {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) { c.Expiry = jwt.NewNumericDate(now.Add(time.Hour)) }), "too long"},
		"that never ends":                 {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) { c.Expiry = nil }), "too long"},
		"with a tenant that climbs":       {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) { c.Tenant = "../x" }), "tenant"},
		"with a role that does not exist": {sign(mine, jose.EdDSA, typ, kid(public), func(c *claims) { c.Role = 99 }), "role 99"},
		"that is no token":                {"fl_abc", "EdDSA"},
		"that is a principal as JSON":     {`{"tenant":"default","user":"default"}`, "EdDSA"},
		"that is huge":                    {strings.Repeat("a", maxLength+1), "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := k.Verify(c.token, "session")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want %q", p, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), c.token) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestAudienceIsTheServiceOfTheMethod(t *testing.T) {
	for method, want := range map[string]string{"/fairlead.session.v1.SessionService/GetTurn": "session", "/fairlead.tools.v1.CallService/CallTool": "tools", "/x/y": "x", "": "unknown"} {
		if got := audienceOf(method); got != want {
			t.Errorf("%q: %q", method, got)
		}
	}
}

func FuzzVerify(f *testing.F) {
	k := Random()
	token, err := k.Mint(zoe, "session")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", token, token[:len(token)-2], "a.b.c", "..", `{"payload":"","signatures":[]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := k.Verify(s, "session"); err == nil && (s != token || cmp.Diff(zoe, p) != "") {
			t.Fatalf("accepted %q as %+v", s, p)
		}
	})
}
