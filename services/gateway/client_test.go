package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
)

// Authorization servers of MCP servers read who Fairlead is, without a credential.
func TestTheClientIDMetadataDocumentIsServedWhereAPublicURLIsSet(t *testing.T) {
	at := func(public string) *httptest.Server {
		conf := gateway.DefaultConfig()
		conf.PublicURL = public
		return serveAs(t, &fake{}, conf, knowing(t, auth.Config{Mode: auth.Required}, nil))
	}
	read := func(srv *httptest.Server) (int, string) {
		resp := send(t, t.Context(), srv, request{"GET", "/v1/mcp/client", "", nil})
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	status, text := read(at("https://agents.example.com/"))
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s, %v", status, text, err)
	}
	want := map[string]any{
		"client_id": "https://agents.example.com/v1/mcp/client", "client_name": "Fairlead", "client_uri": "https://agents.example.com",
		"redirect_uris": []any{"https://agents.example.com/v1/mcp/callback"}, "grant_types": []any{"authorization_code", "refresh_token"},
		"response_types": []any{"code"}, "token_endpoint_auth_method": "none", "application_type": "web",
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	for _, public := range []string{"", "http://127.0.0.1:8080"} { // no authorization server reads these
		if status, text := read(at(public)); status != http.StatusUnauthorized {
			t.Errorf("with the public URL %q: %d %s", public, status, text)
		}
	}
}
