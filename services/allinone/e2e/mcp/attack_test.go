package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// send makes a request as a client does, with further headers in pairs; an empty value removes one.
func (s *server) send(ctx context.Context, t *testing.T, user, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	c := &http.Client{Transport: &http.Transport{}}
	if user != "" {
		c = s.http(t, user)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = resp.Body.Close()
		c.CloseIdleConnections()
	})
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`

// modernCall returns the body and the headers of a call.
func modernCall(id, tool, arguments, further string) (body string, headers []string) {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,` + further + meta + `}}`,
		[]string{"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", tool}
}

// result reads the result of a call from an answer.
func result(t *testing.T, resp *http.Response) (m map[string]any) {
	t.Helper()
	text := read(t, resp)
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if json.Unmarshal([]byte(line), &m) == nil && (m["result"] != nil || m["error"] != nil) {
			return m
		}
	}
	t.Fatalf("%d: there is no result in %s", resp.StatusCode, text)
	return nil
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]any{"gateway": map[string]any{"allowed-origins": []string{"https://app.example.com"}}})
	made, err := s.all.CreateSession(t.Context(), &sessionv1.CreateSessionRequest{SessionId: "admins"})
	if err != nil {
		t.Fatal(err)
	}
	list, headers := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, []string{"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/list"}
	with := func(more ...string) []string { return append(append([]string{}, headers...), more...) }
	for name, c := range map[string]struct {
		user, method, path, body string
		headers                  []string
		status                   int
		want                     string
	}{
		"nothing":                        {"ann", "POST", "/mcp", list, headers, 200, `"Bash"`},
		"no credential":                  {"", "POST", "/mcp", list, headers, 401, "CREDENTIAL_MISSING"},
		"another user's session":         {"ann", "POST", "/mcp/" + made.Session.Name, list, headers, 404, "SESSION_NOT_FOUND"},
		"a session that does not exist":  {"ann", "POST", "/mcp/sessions/nothing", list, headers, 404, "SESSION_NOT_FOUND"},
		"an agent that does not exist":   {"ann", "POST", "/mcp/agents/nothing", list, headers, 404, "AGENT_NOT_FOUND"},
		"a page of another site":         {"ann", "POST", "/mcp", list, with("Origin", "https://evil.example"), 403, ""},
		"an opaque origin":               {"ann", "POST", "/mcp", list, with("Origin", "null"), 403, ""},
		"an origin that is allowed":      {"ann", "POST", "/mcp", list, with("Origin", "https://app.example.com"), 200, `"Bash"`},
		"a large body":                   {"ann", "POST", "/mcp", `{"x":"` + strings.Repeat("x", 10<<20) + `"}`, headers, 413, "BODY_TOO_LARGE"},
		"a large body without a session": {"ann", "POST", "/mcp", `{"x":"` + strings.Repeat("x", 10<<20) + `"}`, nil, 413, "BODY_TOO_LARGE"},
		"a compressed body":              {"ann", "POST", "/mcp", list, with("Content-Encoding", "gzip"), 415, ""},
		"no JSON":                        {"ann", "POST", "/mcp", "{", headers, 400, ""},
		"text":                           {"ann", "POST", "/mcp", list, with("Content-Type", "text/plain"), 415, ""},
		"another method":                 {"ann", "PUT", "/mcp", "", nil, 405, "METHOD_NOT_ALLOWED"},
		"a stream without a session":     {"ann", "GET", "/mcp", "", headers, 405, ""},
		"a session of the protocol":      {"ann", "POST", "/mcp", list, []string{"Mcp-Session-Id", "nothing"}, 404, "session not found"},
		"a revision of nothing":          {"ann", "POST", "/mcp", list, []string{"Mcp-Protocol-Version", "1999-01-01"}, 400, ""},
		"a revision of the future":       {"ann", "POST", "/mcp", list, []string{"Mcp-Protocol-Version", "2099-01-01"}, 400, "-3202"},
		"a header that differs":          {"ann", "POST", "/mcp", list, with("Mcp-Method", "tools/call"), 400, "-32020"},
		"a slash at the end":             {"ann", "POST", "/mcp/", list, headers, 404, ""},
		"a path below":                   {"ann", "POST", "/mcp/sessions/a/b", list, headers, 404, ""},
		"a name in upper case":           {"ann", "POST", "/mcp/sessions/A", list, headers, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp := s.send(t.Context(), t, c.user, c.method, c.path, c.body, c.headers...)
			if got := read(t, resp); resp.StatusCode != c.status || !strings.Contains(got, c.want) {
				t.Errorf("%d %.300s", resp.StatusCode, got)
			}
			if challenge := resp.Header.Get("WWW-Authenticate"); (challenge != "") != (c.status == 401) {
				t.Errorf("WWW-Authenticate: %q", challenge)
			}
			if resp.StatusCode == http.StatusOK && !strings.Contains(resp.Header.Get("Cache-Control"), "no-store") {
				t.Errorf("Cache-Control: %q", resp.Header.Get("Cache-Control"))
			}
		})
	}
}

func TestACallIsMadeOnceUnderAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	body, headers := modernCall("1", "Bash", `{"command":"echo x >> n.txt; wc -l < n.txt"}`, "")
	headers = append(headers, "Idempotency-Key", "k1")
	first := result(t, s.send(t.Context(), t, "ann", http.MethodPost, "/mcp", body, headers...))
	again := result(t, s.send(t.Context(), t, "ann", http.MethodPost, "/mcp", strings.Replace(body, `"id":1`, `"id":2`, 1), headers...))
	if a, b := fmt.Sprint(first["result"]), fmt.Sprint(again["result"]); a != b || !strings.Contains(a, "text:1") {
		t.Errorf("first %s, then %s", a, b)
	}
	other := result(t, s.send(t.Context(), t, "ann", http.MethodPost, "/mcp", strings.Replace(body, "echo x", "echo y", 1), headers...))
	if e, _ := other["error"].(map[string]any); e["code"] != -32602.0 {
		t.Errorf("another call under the key: %v", other)
	}
	// The id of a JSON-RPC request is no key.
	for want := 2; want < 4; want++ {
		if r := fmt.Sprint(result(t, s.send(t.Context(), t, "ann", http.MethodPost, "/mcp", body, headers[:6]...))["result"]); !strings.Contains(r, fmt.Sprintf("text:%d", want)) {
			t.Errorf("the id again: %s, want %d", r, want)
		}
	}
}

func TestARequestStateIsBoundToItsCall(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	ask := func(user, arguments string) (state string) {
		body, headers := modernCall("1", "Write", arguments, "")
		r, _ := result(t, s.send(t.Context(), t, user, http.MethodPost, "/mcp/agents/asker", body, headers...))["result"].(map[string]any)
		if r["resultType"] != "input_required" {
			t.Fatalf("%s is not asked: %v", user, r)
		}
		state, _ = r["requestState"].(string)
		return state
	}
	const arguments = `{"file_path":"a.txt","content":"x"}`
	anns, bobs := ask("ann", arguments), ask("bob", arguments)
	answer := func(user, tool, arguments, state, action string) string {
		body, headers := modernCall("2", tool, arguments, `"requestState":"`+state+`","inputResponses":{"answer":{"action":"`+action+`"}},`)
		return fmt.Sprint(result(t, s.send(t.Context(), t, user, http.MethodPost, "/mcp/agents/asker", body, headers...)))
	}
	for name, got := range map[string]string{
		"another user's":       answer("ann", "Write", arguments, bobs, "accept"),
		"with other arguments": answer("ann", "Write", `{"file_path":"b.txt","content":"x"}`, anns, "accept"),
		"of another tool":      answer("ann", "Read", arguments, anns, "accept"),
		"that was changed":     answer("ann", "Write", arguments, "A"+anns[1:], "accept"),
		"without its MAC":      answer("ann", "Write", arguments, strings.Split(anns, ".")[0], "accept"),
		"of nothing":           answer("ann", "Write", arguments, "x", "accept"),
	} {
		if !strings.Contains(got, "-32602") {
			t.Errorf("a state %s: %s", name, got)
		}
	}
	for range 2 { // the second answer attaches to the call that has ended
		if got := answer("ann", "Write", arguments, anns, "accept"); strings.Contains(got, "isError") || !strings.Contains(got, "a.txt") {
			t.Errorf("the answer: %s", got)
		}
	}
	if got := answer("bob", "Write", arguments, bobs, "decline"); !strings.Contains(got, "isError:true") {
		t.Errorf("a refusal: %s", got)
	}
}

// initialize begins a session of the protocol and returns its headers.
func (s *server) initialize(t *testing.T, user string) []string {
	t.Helper()
	resp := s.send(t.Context(), t, user, http.MethodPost, "/mcp",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+legacy+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if text := read(t, resp); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	headers := []string{"Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", legacy}
	if resp := s.send(t.Context(), t, user, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers...); resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%d", resp.StatusCode)
	}
	return headers
}

func TestASessionOfTheProtocolIsItsUsers(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	headers := s.initialize(t, "ann")
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	for user, want := range map[string]int{"ann": 200, "bob": 403, "": 401} {
		if resp := s.send(t.Context(), t, user, http.MethodPost, "/mcp", list, headers...); resp.StatusCode != want {
			t.Errorf("%q: %d %s", user, resp.StatusCode, read(t, resp))
		}
	}
	if resp := s.send(t.Context(), t, "ann", http.MethodDelete, "/mcp", "", headers...); resp.StatusCode != http.StatusNoContent {
		t.Errorf("the end: %d", resp.StatusCode)
	}
	if resp := s.send(t.Context(), t, "ann", http.MethodPost, "/mcp", list, headers...); resp.StatusCode != http.StatusNotFound {
		t.Errorf("after the end: %d", resp.StatusCode)
	}
}

// A client of an earlier revision that loses its connection comes back for the result.
func TestAClientThatIsDisconnectedComesBack(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	headers := s.initialize(t, "ann")
	ctx, cancel := context.WithCancel(t.Context())
	resp := s.send(ctx, t, "ann", http.MethodPost, "/mcp",
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"echo begun; sleep 2; echo ended"},"_meta":{"progressToken":"p"}}}`, headers...)
	last := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			last = id
		}
		if strings.Contains(lines.Text(), "begun") {
			break
		}
	}
	cancel()
	back := s.send(t.Context(), t, "ann", http.MethodGet, "/mcp", "", append(headers, "Last-Event-ID", last)...)
	// The server may see the end of the first connection after the second request. Clients then try again.
	for end := time.Now().Add(10 * time.Second); back.StatusCode == http.StatusConflict && time.Now().Before(end); {
		_ = read(t, back)
		back = s.send(t.Context(), t, "ann", http.MethodGet, "/mcp", "", append(headers, "Last-Event-ID", last)...)
	}
	var seen bytes.Buffer
	for lines := bufio.NewScanner(back.Body); lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"id":2`) {
			break
		}
	}
	if got := seen.String(); !strings.Contains(got, "ended") || strings.Contains(got, "isError") {
		t.Errorf("%d %s", back.StatusCode, got)
	}
}
