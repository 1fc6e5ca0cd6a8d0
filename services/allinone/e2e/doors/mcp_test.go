package doors

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// knock asks for the tools of ann's session over MCP, and calls one, with every credential.
func (w *world) knock(t *testing.T) {
	t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	post := func(c credential, session, method, params string, headers ...string) (status int, challenge, text string) {
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + meta + `}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/mcp/sessions/"+session, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = c.headers()
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method,
		} {
			req.Header.Set(name, value)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("WWW-Authenticate"), string(b)
	}
	list := func(c credential, session string) (int, string, string) { return post(c, session, "tools/list", "") }
	call := func(c credential, session string) (int, string, string) {
		return post(c, session, "tools/call", `"name":"Write","arguments":{"file_path":"knocked.md","content":"x"},`, "Mcp-Name", "Write")
	}
	for _, c := range w.bad {
		for _, knock := range []func(credential, string) (int, string, string){list, call} {
			if status, challenge, text := knock(c, "hers"); status != http.StatusUnauthorized || !strings.Contains(challenge, "/.well-known/oauth-protected-resource/mcp/sessions/hers") {
				t.Errorf("%s: %d %q %s", c.name, status, challenge, text)
			}
		}
	}
	for _, who := range []string{"rival", "ben", "bob", "vic"} {
		for _, knock := range []func(credential, string) (int, string, string){list, call} {
			status, _, text := knock(w.of(who), "hers")
			_, _, none := knock(w.of(who), absentID)
			if status != http.StatusNotFound || strings.ReplaceAll(text, "hers", absentID) != none {
				t.Errorf("%s: %d %s, and of none %s", who, status, text, none)
			}
			w.quiet(t, "/mcp with "+who, text)
		}
	}
	for _, who := range []string{"a key for agents", "a key for tools"} {
		if status, _, text := list(w.of(who), "hers"); status != http.StatusForbidden || !strings.Contains(text, "SCOPE_REQUIRED") {
			t.Errorf("%s: %d %s", who, status, text)
		}
	}
	for _, who := range []string{"ann", "oda"} {
		if status, _, text := list(w.of(who), "hers"); status != http.StatusOK || !strings.Contains(text, `"Write"`) {
			t.Errorf("%s: %d %s", who, status, text)
		}
	}
}
