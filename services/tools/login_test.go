package tools

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

const callback = "http://127.0.0.1:8080/v1/mcp/callback"

// authority is an authorization server and the guard of an MCP server, which believes only its tokens. It checks
// what a real one checks: client, redirect, PKCE and resource.
type authority struct {
	t        *testing.T
	http     *httptest.Server
	resource string // the MCP server's address

	mu       sync.Mutex
	clients  map[string]string     // redirects by client
	codes    map[string]url.Values // the parameters of the page, by code
	access   map[string]time.Time  // ends of access tokens
	refresh  map[string]bool
	lifetime time.Duration
	narrow   bool            // only a token with the scope write is enough
	wide     map[string]bool // those tokens
	asked    []url.Values    // pages
	made     int
}

func newAuthority(t *testing.T, server http.Handler) *authority {
	t.Helper()
	a := &authority{
		t: t, lifetime: time.Hour, clients: map[string]string{}, codes: map[string]url.Values{}, access: map[string]time.Time{}, refresh: map[string]bool{}, wide: map[string]bool{},
	}
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		token, _ := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		a.mu.Lock()
		end, ok := a.access[token]
		narrow := a.narrow && !a.wide[token]
		a.mu.Unlock()
		switch {
		case narrow && q.Method == http.MethodPost:
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
			w.WriteHeader(http.StatusForbidden)
		case q.URL.Path == "/.well-known/oauth-protected-resource/mcp":
			a.answer(w, map[string]any{"resource": a.resource, "authorization_servers": []string{a.http.URL}, "scopes_supported": []string{"all"}})
		case !ok || time.Now().After(end):
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s", scope="read"`, strings.TrimSuffix(a.resource, "/mcp")+"/.well-known/oauth-protected-resource/mcp"))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			server.ServeHTTP(w, q)
		}
	}))
	a.resource = guarded.URL + "/mcp"
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		a.answer(w, map[string]any{
			"issuer": a.http.URL, "authorization_endpoint": a.http.URL + "/authorize", "token_endpoint": a.http.URL + "/token", "registration_endpoint": a.http.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		})
	})
	mux.HandleFunc("/register", a.register)
	mux.HandleFunc("/authorize", a.authorize)
	mux.HandleFunc("/token", a.token)
	a.http = httptest.NewServer(mux)
	t.Cleanup(func() {
		guarded.CloseClientConnections()
		guarded.Close()
		a.http.Close()
	})
	return a
}

func (a *authority) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (a *authority) register(w http.ResponseWriter, q *http.Request) {
	var m struct {
		RedirectURIs []string `json:"redirect_uris"`
	}
	_ = json.NewDecoder(q.Body).Decode(&m)
	a.mu.Lock()
	defer a.mu.Unlock()
	id := fmt.Sprintf("client-%d", len(a.clients)+1)
	a.clients[id] = m.RedirectURIs[0]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"client_id": id, "redirect_uris": m.RedirectURIs, "token_endpoint_auth_method": "none"})
}

// authorize sends the browser back with a code.
func (a *authority) authorize(w http.ResponseWriter, q *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := q.URL.Query()
	a.asked = append(a.asked, p)
	switch {
	case a.clients[p.Get("client_id")] != p.Get("redirect_uri") || p.Get("redirect_uri") == "", p.Get("response_type") != "code",
		p.Get("code_challenge_method") != "S256" || p.Get("code_challenge") == "", p.Get("resource") != a.resource, p.Get("state") == "":
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	a.made++
	code := fmt.Sprintf("code-%d", a.made)
	a.codes[code] = p
	http.Redirect(w, q, p.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {p.Get("state")}, "iss": {a.http.URL}}.Encode(), http.StatusFound)
}

// token gives tokens for a code or a refresh token, each of which it takes once.
func (a *authority) token(w http.ResponseWriter, q *http.Request) {
	_ = q.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	page, sum := a.codes[q.Form.Get("code")], sha256.Sum256([]byte(q.Form.Get("code_verifier")))
	delete(a.codes, q.Form.Get("code"))
	good := q.Form.Get("resource") == a.resource
	switch q.Form.Get("grant_type") {
	case "authorization_code":
		good = good && page != nil && page.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) &&
			q.Form.Get("redirect_uri") == page.Get("redirect_uri") && q.Form.Get("client_id") == page.Get("client_id")
	case "refresh_token":
		good = good && a.refresh[q.Form.Get("refresh_token")]
		delete(a.refresh, q.Form.Get("refresh_token"))
	}
	if !good {
		w.WriteHeader(http.StatusBadRequest)
		a.answer(w, map[string]any{"error": "invalid_grant"})
		return
	}
	a.made++
	access, refresh := fmt.Sprintf("access-secret-%d", a.made), fmt.Sprintf("refresh-secret-%d", a.made)
	a.access[access], a.refresh[refresh] = time.Now().Add(a.lifetime), true
	a.wide[access] = slices.Contains(strings.Fields(page.Get("scope")), "write")
	a.answer(w, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(a.lifetime.Seconds()), "refresh_token": refresh})
}

// revoke ends all access tokens, and all refresh tokens if both.
func (a *authority) revoke(both bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
	if both {
		clear(a.refresh)
	}
}

// follow is the user's browser: it opens the page and returns what comes back.
func (a *authority) follow(page string) url.Values {
	a.t.Helper()
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(page)
	if err != nil {
		a.t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil || !strings.HasPrefix(back.String(), callback+"?") {
		a.t.Fatalf("the page answers %d, %v: %v", resp.StatusCode, back, err)
	}
	return back.Query()
}

// person is a user of the service.
type person struct {
	t      *testing.T
	ctx    context.Context
	calls  toolsv1.CallServiceClient
	logins toolsv1.LoginServiceClient
	server *commonv1.McpServer
}

func (f *fixture) person(user string, s *commonv1.McpServer) *person {
	f.t.Helper()
	return &person{f.t, principal.With(f.t.Context(), principal.Service("default", user)), f.calls, f.logins, s}
}

// state waits until the server has a state for the user.
func (p *person) state(want commonv1.McpServerState) *commonv1.McpServerStatus {
	p.t.Helper()
	return p.says(want, "")
}

// says waits until the server has a state for the user, and the status says some words.
func (p *person) says(want commonv1.McpServerState, words string) *commonv1.McpServerStatus {
	p.t.Helper()
	var last *commonv1.McpServerStatus
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); <-again.C {
		r, err := p.calls.ListSessionTools(p.ctx, &toolsv1.ListSessionToolsRequest{Call: ref("list"), Servers: []*commonv1.McpServer{p.server}})
		if err != nil {
			p.t.Fatal(err)
		}
		if last = r.Servers[0]; last.State == want && strings.Contains(last.Message, words) {
			return last
		}
	}
	p.t.Fatalf("the server is %v, not %v", last, want)
	return nil
}

func (p *person) begin() string {
	p.t.Helper()
	r, err := p.logins.BeginLogin(p.ctx, &toolsv1.BeginLoginRequest{Server: p.server})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.AuthorizationUrl
}

func (p *person) finish(back url.Values) error {
	_, err := p.logins.FinishLogin(p.ctx, &toolsv1.FinishLoginRequest{State: back.Get("state"), Code: back.Get("code"), Iss: back.Get("iss"), Error: back.Get("error")})
	return err
}

const (
	connected  = commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED
	needsLogin = commonv1.McpServerState_MCP_SERVER_STATE_NEEDS_AUTHORIZATION
)

// withLogins is a fixture whose users can log in, and an MCP server that wants it.
func withLogins(t *testing.T) (*fixture, *authority, *commonv1.McpServer) {
	t.Helper()
	r := newRemote(t, false)
	r.tool("hello", object, says("hello"))
	a := newAuthority(t, r.http.Config.Handler)
	f := newFixture(t, func(c *Config) {
		c.MCPAllowPrivate = []string{"127.0.0.0/8", "::1"}
		c.MCPLoginKey, c.MCPLoginCallback = config.Secret(strings.Repeat("k", 32)), callback
	})
	return f, a, webServer("wiki", a.resource)
}

func TestAUserLogsInToAServer(t *testing.T) {
	f, a, s := withLogins(t)
	ann, bob := f.person("ann", s), f.person("bob", s)
	ann.state(needsLogin)
	back := a.follow(ann.begin())
	if got := a.asked[0].Get("scope"); got != "read" {
		t.Errorf("the scope is %q", got)
	}
	if err := bob.finish(back); err != nil { // the browser comes to any replica, as no user
		t.Fatal(err)
	}
	ann.state(connected)
	bob.state(needsLogin)
	r, err := ann.calls.CallTool(ann.ctx, mcpCall("c1", "mcp__wiki__hello", `{}`, s))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := drain(r); err != nil || got.text() != "hello" {
		t.Errorf("the call says %q, %v", got.text(), err)
	}
	if err := ann.finish(back); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_LOGIN_REFUSED) {
		t.Errorf("the same answer again: %v", err)
	}
	files, _ := filepath.Glob(filepath.Join(f.config.Data, "*"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(text), "access-secret") || strings.Contains(string(text), "refresh-secret") {
			t.Errorf("%s has a token, %v", name, err)
		}
	}
	if _, err := ann.logins.ForgetLogin(ann.ctx, &toolsv1.ForgetLoginRequest{Server: s}); err != nil {
		t.Fatal(err)
	}
	if r, err = ann.calls.CallTool(ann.ctx, mcpCall("c2", "mcp__wiki__hello", `{}`, s)); err != nil {
		t.Fatal(err)
	}
	if got, err := drain(r); err != nil || got.text() == "hello" {
		t.Errorf("a call after the login was forgotten says %q, %v", got.text(), err)
	}
}

func TestACallThatNeedsFurtherRightsWasNotMade(t *testing.T) {
	f, a, s := withLogins(t)
	ann := f.person("ann", s)
	if err := ann.finish(a.follow(ann.begin())); err != nil {
		t.Fatal(err)
	}
	ann.state(connected)
	a.mu.Lock()
	a.narrow = true
	a.mu.Unlock()
	r, err := ann.calls.CallTool(ann.ctx, mcpCall("c1", "mcp__wiki__hello", `{}`, s))
	if err != nil {
		t.Fatal(err)
	}
	got, err := drain(r)
	if err != nil || got.result.GetOutcome() != failed || !strings.Contains(got.text(), "was not made") || !strings.Contains(got.text(), "further rights") {
		t.Errorf("the call ended as %v: %q, %v", got.result.GetOutcome(), got.text(), err)
	}
	if last := ann.state(connected); !strings.Contains(last.GetMessage(), "further rights of the user; log in to it again") {
		t.Errorf("the status says %q", last.GetMessage())
	}
	page := ann.begin()
	if at, err := url.Parse(page); err != nil || at.Query().Get("scope") != "write read" {
		t.Errorf("the next login asks for %q, %v", at.Query().Get("scope"), err)
	}
	if err := ann.finish(a.follow(page)); err != nil {
		t.Fatal(err)
	}
	if r, err = ann.calls.CallTool(ann.ctx, mcpCall("c2", "mcp__wiki__hello", `{}`, s)); err != nil {
		t.Fatal(err)
	}
	if got, err := drain(r); err != nil || got.result.GetOutcome() != ok || got.text() != "hello" {
		t.Errorf("with the wider token the call ended as %v: %q, %v", got.result.GetOutcome(), got.text(), err)
	}
	if last := ann.state(connected); last.GetMessage() != "" {
		t.Errorf("the status then says %q", last.GetMessage())
	}
}

func TestAServerThatWantsFurtherRightsFromTheBeginningWantsALogin(t *testing.T) {
	f, a, s := withLogins(t)
	ann := f.person("ann", s)
	back := a.follow(ann.begin())
	a.mu.Lock()
	a.narrow = true
	a.mu.Unlock()
	if err := ann.finish(back); err != nil {
		t.Fatal(err)
	}
	ann.says(needsLogin, "further rights")
	if err := ann.finish(a.follow(ann.begin())); err != nil {
		t.Fatal(err)
	}
	ann.state(connected)
}

func TestATokenIsRefreshedUntilTheUserMustLogInAgain(t *testing.T) {
	f, a, s := withLogins(t)
	ann := f.person("ann", s)
	if err := ann.finish(a.follow(ann.begin())); err != nil {
		t.Fatal(err)
	}
	ann.state(connected)
	call := func(id string) string {
		t.Helper()
		r, err := ann.calls.CallTool(ann.ctx, mcpCall(id, "mcp__wiki__hello", `{}`, s))
		if err != nil {
			t.Fatal(err)
		}
		got, err := drain(r)
		if err != nil {
			t.Fatal(err)
		}
		return got.text()
	}
	a.revoke(false) // the server takes the token no more, before its time
	if got := call("c1"); got != "hello" {
		t.Errorf("after the access token has ended: %q", got)
	}
	a.revoke(true)
	if got := call("c2"); got == "hello" {
		t.Error("a call without any valid token was made")
	}
	ann.state(needsLogin)
	if err := ann.finish(a.follow(ann.begin())); err != nil {
		t.Fatal(err)
	}
	ann.state(connected)
	if len(a.clients) > 2 {
		t.Errorf("%d clients were registered", len(a.clients))
	}
}

func TestLoginsThatAreRefused(t *testing.T) {
	f, a, s := withLogins(t)
	ann := f.person("ann", s)
	for name, spoil := range map[string]func(url.Values){
		"another issuer":       func(v url.Values) { v.Set("iss", "https://evil.example.com") },
		"no issuer":            func(v url.Values) { v.Del("iss") },
		"another state":        func(v url.Values) { v.Set("state", "guessed") },
		"another login's code": func(v url.Values) { v.Set("code", a.follow(ann.begin()).Get("code")) },
		"the user refuses":     func(v url.Values) { v.Del("code"); v.Set("error", "access_denied") },
	} {
		t.Run(name, func(t *testing.T) {
			back := a.follow(ann.begin())
			good := url.Values{}
			for k, v := range back {
				good[k] = slices.Clone(v)
			}
			spoil(back)
			err := ann.finish(back)
			if !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_LOGIN_REFUSED) {
				t.Errorf("it was taken: %v", err)
			}
			if back.Get("state") == good.Get("state") {
				if err := ann.finish(good); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_LOGIN_REFUSED) {
					t.Errorf("the login could be tried again: %v", err)
				}
			}
		})
	}
	ann.state(needsLogin)
	stdio := &commonv1.McpServer{Name: "x", Transport: &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: "cat"}}}
	if _, err := ann.logins.BeginLogin(ann.ctx, &toolsv1.BeginLoginRequest{Server: stdio}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_LOGIN_NOT_POSSIBLE) {
		t.Errorf("a server in the sandbox: %v", err)
	}
	open := newRemote(t, false)
	if _, err := ann.logins.BeginLogin(ann.ctx, &toolsv1.BeginLoginRequest{Server: open.as("open")}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_LOGIN_NOT_POSSIBLE) {
		t.Errorf("a server that wants no login: %v", err)
	}
	plain := local(t).person("ann", proto.CloneOf(s))
	if _, err := plain.logins.BeginLogin(plain.ctx, &toolsv1.BeginLoginRequest{Server: s}); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_LOGIN_NOT_CONFIGURED) {
		t.Errorf("without a configuration: %v", err)
	}
}
