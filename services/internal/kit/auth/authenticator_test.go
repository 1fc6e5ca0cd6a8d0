package auth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// provider is an issuer of tokens on an HTTP server.
type provider struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	keys  []jose.JSONWebKey // private ones
	reads int
	away  bool
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	p.rotate("first")
	return p
}

// rotate replaces the keys by a new one.
func (p *provider) rotate(id string) {
	p.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = []jose.JSONWebKey{{Key: k, KeyID: id, Algorithm: "ES256", Use: "sig"}}
}

func (p *provider) set(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		http.Error(w, "away", http.StatusBadGateway)
		return
	}
	var answer any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]string{"issuer": p.URL, "jwks_uri": p.URL + "/keys"}
	case "/keys":
		p.reads++
		var set jose.JSONWebKeySet
		for _, k := range p.keys {
			set.Keys = append(set.Keys, k.Public())
		}
		answer = set
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// token signs claims with a key.
func token(t *testing.T, key any, algorithm jose.SignatureAlgorithm, id string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", id))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sign signs claims with the provider's key.
func (p *provider) sign(change func(c map[string]any)) string {
	p.t.Helper()
	p.mu.Lock()
	k := p.keys[0]
	p.mu.Unlock()
	return token(p.t, k.Key, jose.ES256, k.KeyID, p.claims(change))
}

func (p *provider) claims(change func(c map[string]any)) map[string]any {
	c := map[string]any{"iss": p.URL, "aud": "fairlead", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "org": "acme", "groups": []string{"dev", "ops"}}
	if change != nil {
		change(c)
	}
	return c
}

// noKeys knows no keys.
type noKeys struct{}

func (noKeys) ResolveKey(context.Context, []byte) (Resolved, error) {
	return Resolved{}, ErrRefused
}

func (noKeys) MostRole(context.Context, string, string) (principal.Role, error) {
	return principal.RoleAdmin, nil
}

func newAuthenticator(t *testing.T, c Config, keys Keys) (*Authenticator, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	a, err := New(c, keys, false, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range a.issuers {
		i.keys.minRefresh = 0
	}
	return a, &log
}

func (p *provider) config() Config {
	return Config{Issuers: []Issuer{{Issuer: p.URL, Audience: "fairlead", TenantClaim: "org", RoleClaim: "groups", Roles: map[string]string{"dev": "viewer", "ops": "operator"}}}}
}

func TestTokensOfAnIssuer(t *testing.T) {
	p := newProvider(t)
	a, log := newAuthenticator(t, p.config(), noKeys{})
	p.mu.Lock()
	mine, _ := p.keys[0].Key.(*ecdsa.PrivateKey)
	p.mu.Unlock()
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set := func(k string, v any) func(map[string]any) { return func(c map[string]any) { c[k] = v } }
	drop := func(k string) func(map[string]any) { return func(c map[string]any) { delete(c, k) } }
	good := p.sign(nil)
	parts := strings.Split(good, ".")
	der, err := x509.MarshalPKIXPublicKey(mine.Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	internal, err := internaltoken.Random().Mint(principal.Default(), "session")
	if err != nil {
		t.Fatal(err)
	}
	const invalid, malformed, missing = apierr.ReasonCredentialInvalid, apierr.ReasonCredentialMalformed, apierr.ReasonCredentialMissing
	for name, c := range map[string]struct{ credential, want string }{
		"that is right":                          {good, ""},
		"for several servers":                    {p.sign(set("aud", []string{"other", "fairlead"})), ""},
		"that began just now, by a faster clock": {p.sign(set("nbf", time.Now().Add(leeway/2).Unix())), ""},
		"none":                                   {"", missing},
		"that is no token":                       {"hello", malformed},
		"that is cut":                            {parts[0] + "." + parts[1], malformed},
		"that is no base64":                      {"a.b.c", invalid},
		"that is huge":                           {strings.Repeat("a", maxCredential) + ".b.c", malformed},
		"that has ended":                         {p.sign(set("exp", time.Now().Add(-2*leeway).Unix())), invalid},
		"that never ends":                        {p.sign(drop("exp")), invalid},
		"that begins later":                      {p.sign(set("nbf", time.Now().Add(2*leeway).Unix())), invalid},
		"of another issuer":                      {p.sign(set("iss", "https://other.example")), invalid},
		"without an issuer":                      {p.sign(drop("iss")), invalid},
		"for another server":                     {p.sign(set("aud", "other")), invalid},
		"for no server":                          {p.sign(drop("aud")), invalid},
		"without a user":                         {p.sign(drop("sub")), invalid},
		"whose user has a slash":                 {p.sign(set("sub", "ann/variables")), invalid},
		"without a tenant":                       {p.sign(drop("org")), invalid},
		"whose tenant manages tenants":           {p.sign(set("org", "default")), invalid},
		"whose tenant climbs":                    {p.sign(set("org", "../x")), invalid},
		"signed by another key":                  {token(t, other, jose.ES256, "first", p.claims(nil)), invalid},
		"signed by a key of no one":              {token(t, other, jose.ES256, "unknown", p.claims(nil)), invalid},
		"without a signature":                    {base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"first"}`)) + "." + parts[1] + ".", invalid},
		"signed with the public key as a secret": {token(t, publicPEM, jose.HS256, "first", p.claims(nil)), invalid},
		"with another content":                   {parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+p.URL+`","aud":"fairlead","sub":"root"}`)) + "." + parts[2], invalid},
		"of a service, for another one":          {internal, invalid},
		"an API key that does not exist":         {"fl_secret", invalid},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second answer may be remembered
				got, err := a.Authenticate(t.Context(), c.credential)
				if apierr.Reason(err) != c.want || err != nil && apierr.Code(err) != codes.Unauthenticated {
					t.Errorf("got %+v, %v", got, err)
				}
				if err == nil && (got.Tenant != "acme" || got.User != "ann" || got.Role != principal.RoleOperator || !strings.HasPrefix(got.Credential, "tokens/")) {
					t.Errorf("principal %+v", got)
				}
			}
			if c.credential != "" && len(c.credential) > 5 && strings.Contains(log.String(), c.credential) {
				t.Errorf("the log has the credential:\n%s", log)
			}
		})
	}
	for _, secret := range append(parts, "fl_secret") {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if !strings.Contains(log.String(), "a token is refused") || !strings.Contains(log.String(), "exp") {
		t.Errorf("the log has no reasons:\n%s", log)
	}
}

// A token for one address opens no other one, whatever was remembered of it.
func TestATokenForAResourceIsGoodThere(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	c.Issuers[0].Audiences = []string{"https://fairlead.example", "urn:fairlead"}
	a, _ := newAuthenticator(t, c, noKeys{})
	const mcp, coder = "https://agents.example/mcp", "https://agents.example/mcp/agents/coder"
	token := func(aud ...string) string { return p.sign(func(c map[string]any) { c["aud"] = aud }) }
	for _, x := range []struct {
		aud      []string
		resource string
		good     bool
	}{
		{[]string{"fairlead"}, "", true},
		{[]string{"fairlead"}, mcp, true},
		{[]string{"urn:fairlead"}, "", true},
		{[]string{"other", "https://fairlead.example"}, coder, true},
		{[]string{mcp}, mcp, true},
		{[]string{mcp}, "", false},
		{[]string{mcp}, coder, false},
		{[]string{coder}, mcp, false},
		{[]string{coder}, coder, true},
		{[]string{"https://agents.example"}, mcp, false},
		{[]string{""}, "", false},
		{[]string{""}, mcp, false},
		{nil, mcp, false},
	} {
		for range 2 { // the second answer may be remembered
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+token(x.aud...))
			ctx, stop, err := a.HTTP(r, x.resource)
			if (err == nil) != x.good || err != nil && apierr.Reason(err) != apierr.ReasonCredentialInvalid {
				t.Errorf("aud %q at %q: %v", x.aud, x.resource, err)
			}
			if err != nil {
				continue
			}
			stop()
			if who, _ := principal.From(ctx); who.User != "ann" || !strings.HasPrefix(who.Credential, "tokens/") {
				t.Errorf("aud %q at %q: %+v", x.aud, x.resource, who)
			}
		}
	}
}

func TestAnIssuerRotatesItsKeys(t *testing.T) {
	p := newProvider(t)
	a, _ := newAuthenticator(t, p.config(), noKeys{})
	if _, err := a.Authenticate(t.Context(), p.sign(nil)); err != nil {
		t.Fatal(err)
	}
	p.rotate("second")
	if _, err := a.Authenticate(t.Context(), p.sign(nil)); err != nil {
		t.Errorf("a token with the new key: %v", err)
	}
	if p.reads != 2 {
		t.Errorf("the keys were read %d times", p.reads)
	}
}

func TestForgedKeysCauseFewReads(t *testing.T) {
	p := newProvider(t)
	a, _ := newAuthenticator(t, p.config(), noKeys{})
	a.issuers[p.URL].keys.minRefresh = time.Hour
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		_, _ = a.Authenticate(t.Context(), token(t, other, jose.ES256, "unknown", p.claims(func(c map[string]any) { c["n"] = i })))
	}
	if p.reads != 1 {
		t.Errorf("the keys were read %d times", p.reads)
	}
}

func TestAnIssuerThatIsAway(t *testing.T) {
	p := newProvider(t)
	a, log := newAuthenticator(t, p.config(), noKeys{})
	known := p.sign(func(c map[string]any) { c["jti"] = "1" })
	p.set(true)
	if _, err := a.Authenticate(t.Context(), known); apierr.Code(err) != codes.Unavailable || apierr.Reason(err) != apierr.ReasonCredentialUnverified {
		t.Errorf("before its keys are known: %v", err)
	}
	p.set(false)
	if _, err := a.Authenticate(t.Context(), known); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	p.set(true)
	if _, err := a.Authenticate(t.Context(), p.sign(func(c map[string]any) { c["jti"] = "2" })); err != nil {
		t.Errorf("with a known key: %v", err)
	}
	if !strings.Contains(log.String(), "502") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

func TestKeysOfAnIssuerInAFile(t *testing.T) {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
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
	a, _ := newAuthenticator(t, Config{Issuers: []Issuer{{Issuer: "https://idp.example", Audience: "fairlead", JWKSFile: file, Algorithms: []string{"RS256"}, Role: "none", RoleClaim: "realm.roles", Roles: map[string]string{"boss": "admin"}}}}, noKeys{})
	claims := func(roles any) map[string]any {
		return map[string]any{"iss": "https://idp.example", "aud": "fairlead", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "realm": map[string]any{"roles": roles}}
	}
	got, err := a.Authenticate(t.Context(), token(t, k, jose.RS256, "k", claims("other boss")))
	if err != nil || got.Tenant != "default" || got.Role != principal.RoleAdmin {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := a.Authenticate(t.Context(), token(t, k, jose.RS256, "k", claims([]string{"other"}))); apierr.Reason(err) != apierr.ReasonCredentialInvalid {
		t.Errorf("without a mapped role: %v", err)
	}
	if _, err := a.Authenticate(t.Context(), token(t, k, jose.PS256, "k", claims("boss"))); apierr.Reason(err) != apierr.ReasonCredentialInvalid {
		t.Errorf("with an algorithm that the issuer may not use: %v", err)
	}
}

// book knows one key, until it is revoked.
type book struct {
	hash    [32]byte
	revoked bool
	closed  bool
	expire  time.Time
	fail    error
	asked   int
}

func (b *book) ResolveKey(_ context.Context, hash []byte) (Resolved, error) {
	b.asked++
	switch {
	case b.fail != nil:
		return Resolved{}, b.fail
	case len(hash) == 0 && !b.closed:
		return Resolved{Principal: principal.Default()}, nil
	case bytes.Equal(hash, b.hash[:]) && !b.revoked:
		return Resolved{principal.Principal{Tenant: "acme", User: "ann", Role: principal.RoleUser, Credential: "keys/k"}, b.expire}, nil
	}
	return Resolved{}, fmt.Errorf("%w: the key of ann was revoked by bob", ErrRefused)
}

func (b *book) MostRole(context.Context, string, string) (principal.Role, error) {
	return principal.RoleAdmin, b.fail
}

func TestKeysAreRememberedForFourSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{hash: sha256.Sum256([]byte("fl_good"))}
		a, log := newAuthenticator(t, Config{}, b)
		call := func(credential, want string) {
			t.Helper()
			if _, err := a.Authenticate(t.Context(), credential); apierr.Reason(err) != want {
				t.Errorf("%q: %v, want %q", credential, err, want)
			}
		}
		for range 3 {
			call("fl_good", "")
			call("fl_bad", apierr.ReasonCredentialInvalid)
			call("", "")
		}
		if b.asked != 3 {
			t.Errorf("asked %d times", b.asked)
		}
		b.revoked, b.closed = true, true
		time.Sleep(4 * time.Second) //nolint:forbidigo // the bubble's clock
		call("fl_good", apierr.ReasonCredentialInvalid)
		call("", apierr.ReasonCredentialMissing)
		b.revoked = false
		time.Sleep(refusedTime) //nolint:forbidigo // the bubble's clock
		call("fl_good", "")
		b.fail = errors.New("the database is away")
		call("fl_good", "")         // as long as it is remembered
		time.Sleep(4 * time.Second) //nolint:forbidigo // the bubble's clock
		call("fl_good", apierr.ReasonCredentialUnverified)
		call("", apierr.ReasonCredentialUnverified)
		b.fail = nil
		call("fl_good", "")
		time.Sleep(4 * time.Second) //nolint:forbidigo // the bubble's clock
		b.expire = time.Now().Add(time.Second)
		call("fl_good", "")
		b.revoked = true
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		call("fl_good", apierr.ReasonCredentialInvalid)
		if strings.Contains(log.String(), "fl_") {
			t.Errorf("the log has a key:\n%s", log)
		}
	})
}

func TestErrorsDoNotTellWhyACredentialIsInvalid(t *testing.T) {
	a, _ := newAuthenticator(t, Config{}, &book{revoked: true, hash: sha256.Sum256([]byte("fl_revoked"))})
	var texts []string
	for _, c := range []string{"fl_revoked", "fl_unknown", "a.b.c"} {
		_, err := a.Authenticate(t.Context(), c)
		texts = append(texts, err.Error())
	}
	if texts[0] != texts[1] || texts[0] != texts[2] || strings.Contains(texts[0], "bob") {
		t.Errorf("the errors are %q", texts)
	}
}

func TestModes(t *testing.T) {
	issuers := []Issuer{{Issuer: "https://idp.example", Audience: "fairlead"}}
	for name, c := range map[string]struct {
		config    Config
		reachable bool
		want      Mode
	}{
		"on loopback":                            {Config{}, false, Auto},
		"with an issuer":                         {Config{Mode: Auto, Issuers: issuers}, false, Required},
		"reachable":                              {Config{Mode: Auto}, true, Required},
		"reachable, and declared insecure":       {Config{Mode: Auto, InsecureNoAuth: true}, true, Open},
		"open":                                   {Config{Mode: Open}, false, Open},
		"open and reachable":                     {Config{Mode: Open}, true, ""},
		"open, reachable, and declared insecure": {Config{Mode: Open, InsecureNoAuth: true}, true, Open},
		"required":                               {Config{Mode: Required}, false, Required},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			a, err := New(c.config, noKeys{}, c.reachable, slog.New(slog.NewTextHandler(&log, nil)))
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), "--insecure-no-auth") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || a.mode != c.want {
				t.Errorf("mode %q, %v", a.mode, err)
			}
			if loud := strings.Contains(log.String(), "NOTHING AUTHENTICATES CALLERS"); loud != (c.reachable && c.want == Open) {
				t.Errorf("a loud warning: %v", loud)
			}
		})
	}
}

func TestFaultsOfIssuers(t *testing.T) {
	for name, c := range map[string]struct {
		issuer Issuer
		want   string
	}{
		"no audience":            {Issuer{Issuer: "https://a.example"}, "audience"},
		"an empty audience":      {Issuer{Issuer: "https://a.example", Audiences: []string{""}}, "audiences"},
		"no https":               {Issuer{Issuer: "http://a.example", Audience: "f"}, "https"},
		"no address":             {Issuer{Issuer: "idp", Audience: "f"}, "issuer"},
		"a symmetric algorithm":  {Issuer{Issuer: "https://a.example", Audience: "f", Algorithms: []string{"HS256"}}, "HS256"},
		"no algorithm":           {Issuer{Issuer: "https://a.example", Audience: "f", Algorithms: []string{"none"}}, "none"},
		"two tenants":            {Issuer{Issuer: "https://a.example", Audience: "f", Tenant: "a", TenantClaim: "org"}, "tenant-claim"},
		"roles without a claim":  {Issuer{Issuer: "https://a.example", Audience: "f", Roles: map[string]string{"a": "admin"}}, "role-claim"},
		"a role of services":     {Issuer{Issuer: "https://a.example", Audience: "f", RoleClaim: "r", Roles: map[string]string{"a": "service"}}, "service"},
		"two sources of keys":    {Issuer{Issuer: "https://a.example", Audience: "f", JWKSFile: "f", JWKSURL: "https://b.example"}, "jwks-file"},
		"keys over plain HTTP":   {Issuer{Issuer: "https://a.example", Audience: "f", JWKSURL: "http://b.example/keys"}, "jwks-url"},
		"plain HTTP on loopback": {Issuer{Issuer: "http://127.0.0.1:5556", Audience: "f"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.issuer.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHeadersOfRequests(t *testing.T) {
	a, _ := newAuthenticator(t, Config{}, &book{hash: sha256.Sum256([]byte("fl_good"))})
	for name, c := range map[string]struct {
		header http.Header
		want   string
	}{
		"none":                     {http.Header{}, ""},
		"a bearer key":             {http.Header{"Authorization": {"Bearer fl_good"}}, ""},
		"in lower case":            {http.Header{"Authorization": {"bearer  fl_good "}}, ""},
		"an x-api-key":             {http.Header{"X-Api-Key": {"fl_good"}}, ""},
		"an x-api-key of another":  {http.Header{"X-Api-Key": {"sk-ant"}}, apierr.ReasonCredentialMalformed},
		"both":                     {http.Header{"Authorization": {"Bearer fl_good"}, "X-Api-Key": {"fl_good"}}, ""},
		"both, and different":      {http.Header{"Authorization": {"Bearer fl_good"}, "X-Api-Key": {"fl_bad"}}, apierr.ReasonCredentialMalformed},
		"twice":                    {http.Header{"Authorization": {"Bearer fl_good", "Bearer fl_good"}}, apierr.ReasonCredentialMalformed},
		"another scheme":           {http.Header{"Authorization": {"Basic fl_good"}}, apierr.ReasonCredentialMalformed},
		"a scheme without a value": {http.Header{"Authorization": {"Bearer"}}, apierr.ReasonCredentialMalformed},
		"an empty header":          {http.Header{"Authorization": {""}}, apierr.ReasonCredentialMalformed},
		"a wrong key":              {http.Header{"Authorization": {"Bearer fl_bad"}}, apierr.ReasonCredentialInvalid},
		"none, through a proxy":    {http.Header{"X-Forwarded-For": {"192.0.2.7"}}, apierr.ReasonCredentialMissing},
		"a key, through a proxy":   {http.Header{"Forwarded": {"for=192.0.2.7"}, "X-Api-Key": {"fl_good"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header = c.header
			_, stop, err := a.HTTP(r, "")
			if apierr.Reason(err) != c.want {
				t.Errorf("got %v", err)
			}
			if err == nil {
				stop()
			}
		})
	}
}
