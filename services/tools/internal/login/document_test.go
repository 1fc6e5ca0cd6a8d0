package login

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/store/sqlite"
)

// world is a gateway, an authorization server that reads the documents of its clients, and a server that trusts it.
type world struct {
	t                       *testing.T
	gateway, authority, mcp *httptest.Server
	document                string // of the gateway; "": it has none
	advertised              bool   // that clients may have documents
	registered              int
	client                  string // of the last page
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, advertised: true}
	say := func(out http.ResponseWriter, v any) {
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(v)
	}
	w.gateway = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/v1/mcp/client" || w.document == "" {
			http.NotFound(out, q)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(out, w.document)
	}))
	w.document = fmt.Sprintf(`{"client_id":"%s/v1/mcp/client","client_name":"Fairlead","redirect_uris":["%s"]}`, w.gateway.URL, w.callback())
	authority := http.NewServeMux()
	authority.HandleFunc("/.well-known/oauth-authorization-server", func(out http.ResponseWriter, _ *http.Request) {
		at := w.authority.URL
		say(out, map[string]any{
			"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "registration_endpoint": at + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"client_id_metadata_document_supported": w.advertised,
		})
	})
	authority.HandleFunc("/register", func(out http.ResponseWriter, _ *http.Request) {
		w.registered++
		out.WriteHeader(http.StatusCreated)
		say(out, map[string]any{"client_id": "registered", "redirect_uris": []string{w.callback()}, "token_endpoint_auth_method": "none"})
	})
	authority.HandleFunc("/authorize", w.authorize)
	authority.HandleFunc("/token", func(out http.ResponseWriter, q *http.Request) {
		if q.FormValue("client_id") != w.client || q.FormValue("code") != "code" || q.FormValue("redirect_uri") != w.callback() {
			http.Error(out, `{"error":"invalid_client"}`, http.StatusBadRequest)
			return
		}
		say(out, map[string]any{"access_token": "token", "token_type": "Bearer"})
	})
	w.authority = httptest.NewTLSServer(authority)
	w.mcp = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		if strings.HasPrefix(q.URL.Path, "/.well-known/oauth-protected-resource") {
			say(out, map[string]any{"resource": w.mcp.URL + "/mcp", "authorization_servers": []string{w.authority.URL}})
			return
		}
		out.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(func() {
		w.mcp.Close()
		w.authority.Close()
		w.gateway.Close()
	})
	return w
}

func (w *world) callback() string { return w.gateway.URL + "/v1/mcp/callback" }

// authorize takes a client that it has registered, or whose document names the redirect.
func (w *world) authorize(out http.ResponseWriter, q *http.Request) {
	w.client = q.FormValue("client_id")
	back := q.FormValue("redirect_uri")
	if w.client != "registered" {
		resp, err := w.gateway.Client().Get(w.client)
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		var document struct {
			ID        string   `json:"client_id"`
			Redirects []string `json:"redirect_uris"`
		}
		if json.NewDecoder(resp.Body).Decode(&document) != nil || document.ID != w.client || len(document.Redirects) != 1 || document.Redirects[0] != back {
			http.Error(out, "the document does not fit", http.StatusBadRequest)
			return
		}
	}
	http.Redirect(out, q, back+"?"+url.Values{"code": {"code"}, "state": {q.FormValue("state")}}.Encode(), http.StatusFound)
}

// login logs a user in and returns the client's id.
func (w *world) login(callback string) string {
	w.t.Helper()
	db, err := sqlite.Open(w.t.Context(), filepath.Join(w.t.TempDir(), "tools.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	// The servers of the test have the same certificate, so one client trusts all of them.
	l, err := New(Config{Store: db, Client: w.gateway.Client(), Key: strings.Repeat("k", 32), Callback: callback})
	if err != nil {
		w.t.Fatal(err)
	}
	ann := Owner{"default", "ann"}
	page, _, err := l.Begin(w.t.Context(), ann, &commonv1.McpServer{Name: "wiki", Transport: &commonv1.McpServer_Http{Http: &commonv1.McpHttp{Url: w.mcp.URL + "/mcp"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	at, err := url.Parse(page)
	if err != nil {
		w.t.Fatal(err)
	}
	if callback != w.callback() {
		return at.Query().Get("client_id")
	}
	browser := *w.gateway.Client()
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := browser.Get(page)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		w.t.Fatalf("the page answers %d: %v", resp.StatusCode, err)
	}
	if _, err := l.Finish(w.t.Context(), Answer{State: back.Query().Get("state"), Code: back.Query().Get("code")}); err != nil {
		w.t.Fatal(err)
	}
	if token, err := l.Token(w.t.Context(), ann, w.mcp.URL+"/mcp", ""); err != nil || token != "token" {
		w.t.Errorf("the token is %q, %v", token, err)
	}
	return at.Query().Get("client_id")
}

func TestFairleadIsKnownByItsDocument(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		known  bool
	}{
		"where both have it":                                {func(*world) {}, true},
		"not where the authorization server takes none":     {func(w *world) { w.advertised = false }, false},
		"not where the gateway has none":                    {func(w *world) { w.document = "" }, false},
		"not where the gateway's is of another callback":    {func(w *world) { w.document = strings.ReplaceAll(w.document, "/callback", "/other") }, false},
		"not where the gateway's is of another client":      {func(w *world) { w.document = strings.ReplaceAll(w.document, "/client", "/other") }, false},
		"not where the gateway answers what is no document": {func(w *world) { w.document = "hello" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			want, registered := "registered", 1
			if c.known {
				want, registered = w.gateway.URL+"/v1/mcp/client", 0
			}
			if got := w.login(w.callback()); got != want || w.registered != registered {
				t.Errorf("the client is %s after %d registrations, want %s", got, w.registered, want)
			}
		})
	}
	w := newWorld(t)
	if got := w.login("http://127.0.0.1:8080/v1/mcp/callback"); got != "registered" {
		t.Errorf("with a callback on this machine alone, the client is %s", got)
	}
}
