package mcp

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// post sends a request without the SDK's client.
func (s *server) post(t *testing.T, user, path, revision, method, name, params string) *http.Response {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":12345678901234567890.10,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params, revision)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {revision}, "Mcp-Method": {method}, "Mcp-Name": {name},
	}
	resp, err := s.http(t, user).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// TestACallThatSaysNothingKeepsItsAnswerAlive: a proxy with an idle limit cuts an answer that has not begun, and the cut
// cancels the call. The command ends only after the test has read the beginning of the answer and two comments.
func TestACallThatSaysNothingKeepsItsAnswerAlive(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]any{"gateway": map[string]any{"mcp-sessions": false, "heartbeat": "100ms"}})
	eras(t, func(t *testing.T, revision string) {
		const command = `rm -f go; until [ -e go ]; do sleep 0.1; done; echo went`
		resp := s.post(t, "ann", "/mcp", revision, "tools/call", "Bash", fmt.Sprintf(`"name":"Bash","arguments":{"command":%q},`, command))
		if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
			t.Fatalf("%d %s", resp.StatusCode, kind)
		}
		lines := bufio.NewScanner(resp.Body)
		for range 3 {
			for lines.Scan() && lines.Text() == "" { //nolint:revive // it skips empty lines
			}
			if lines.Text() != ": ping" {
				t.Fatalf("the answer goes on with %q, %v", lines.Text(), lines.Err())
			}
		}
		found, err := s.all.ListSessions(t.Context(), &sessionv1.ListSessionsRequest{User: "users/ann"})
		if err != nil || len(found.GetSessions()) != 1 {
			t.Fatalf("the sessions are %v, %v", found, err)
		}
		put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+"/v1/"+found.GetSessions()[0].GetName()+"/files/go", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		wrote, err := s.http(t, "ann").Do(put)
		if err != nil || wrote.StatusCode > http.StatusCreated {
			t.Fatalf("%v, %v", wrote, err)
		}
		_ = wrote.Body.Close()
		var last string
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				last = data
			}
		}
		if !strings.Contains(last, "went") || !strings.Contains(last, `"id":12345678901234567890.10,`) || lines.Err() != nil {
			t.Errorf("the answer is %s, %v", last, lines.Err())
		}
	})
}

// TestAnErrorThatComesSoonHasItsStatus: the protocol wants 400 for it, and the answer has not begun.
func TestAnErrorThatComesSoonHasItsStatus(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if resp := s.post(t, "ann", "/mcp", modern, "tools/call", "Nothing", `"name":"Nothing","arguments":{},`); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a tool that does not exist is %d", resp.StatusCode)
	}
}
