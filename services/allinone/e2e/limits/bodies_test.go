package limits

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// repeated returns n values with commas between them.
func repeated(n int, value string) string { return strings.Repeat(value+",", n-1) + value }

// nested returns a JSON value n levels deep.
func nested(n int, open, value, end string) string {
	return strings.Repeat(open, n) + value + strings.Repeat(end, n)
}

const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"Write","arguments":`

// forms are the bodies of the paths that have no message of the contract, with n items. The number is how many a request
// may have, or where the work for it could grow faster than it.
var forms = map[string]struct {
	path string
	body func(n int) string
	n    int
}{
	"messages of AG-UI":     {"/v1/agui/coder", func(n int) string { return thread(repeated(n, `{"id":"u","role":"user","content":"hi"}`)) }, 10_001},
	"no messages of AG-UI":  {"/v1/agui/coder", func(n int) string { return thread(repeated(n, `{}`)) }, 10_001},
	"new messages of AG-UI": {"/v1/agui/coder", func(n int) string { return thread(repeated(n, `{"id":"u","role":"user","content":"hi"}`)) }, 2_000},
	"parts of AG-UI":        {"/v1/agui/coder", func(n int) string { return thread(`{"id":"u","role":"user","content":[` + repeated(n, `{}`) + `]}`) }, 65},
	"tools of AG-UI": {"/v1/agui/coder", func(n int) string {
		return `{"threadId":"t","runId":"r","messages":[],"tools":[` + repeated(n, `{"name":"a"}`) + `]}`
	}, 65},
	"context of AG-UI": {"/v1/agui/coder", func(n int) string {
		return `{"threadId":"t","runId":"r","messages":[],"context":[` + repeated(n, `{}`) + `]}`
	}, 257},
	"resume of AG-UI": {"/v1/agui/coder", func(n int) string {
		return `{"threadId":"t","runId":"r","messages":[],"resume":[` + repeated(n, `{}`) + `]}`
	}, 257},
	"values of AG-UI": {"/v1/agui/coder", func(n int) string {
		return `{"threadId":"t","runId":"r","messages":[],"state":{"a":[` + repeated(n, `1`) + `]}}`
	}, 200_001},
	"a deep state of AG-UI": {"/v1/agui/coder", func(n int) string {
		return `{"threadId":"t","runId":"r","messages":[],"state":` + nested(n, `{"a":`, `1`, `}`) + `}`
	}, 20_000},
	"messages of the AI SDK": {"/v1/ai-sdk/chat", func(n int) string {
		return `{"id":"c","messages":[` + repeated(n, `{"id":"u","role":"user","parts":[]}`) + `]}`
	}, 10_001},
	"parts of the AI SDK": {"/v1/ai-sdk/chat", func(n int) string {
		return `{"id":"c","messages":[{"id":"u","role":"user","parts":[` + repeated(n, `{"type":"text","text":"a"}`) + `]}]}`
	}, 65},
	"tools of the AI SDK": {"/v1/ai-sdk/chat", func(n int) string {
		return `{"id":"c","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"a"}]}],"clientTools":[` + repeated(n, `{"name":"a"}`) + `]}`
	}, 65},
	"events of Managed Agents": {"/anthropic/v1/sessions/sesn_x/events", func(n int) string { return `{"events":[` + repeated(n, `{"type":"user.message","content":"a"}`) + `]}` }, 101},
	"tools of Managed Agents": {"/anthropic/v1/agents", func(n int) string {
		return `{"name":"a","model":"scripted:default","tools":[` + repeated(n, `{"type":"custom","name":"a"}`) + `]}`
	}, 257},
	"events of OpenAI Agents": {"/openai/v1/agents/sessions/x/events", func(n int) string { return `{"events":[` + repeated(n, `{"type":"agent.session.input.cancel"}`) + `]}` }, 101},
	"tools of OpenAI Agents": {"/openai/v1/agents", func(n int) string {
		return `{"model":"scripted:default","tools":[` + repeated(n, `{"type":"function","name":"a"}`) + `]}`
	}, 257},
	"parts of A2A": {"/a2a/coder/message:send", func(n int) string {
		return `{"message":{"messageId":"m","role":"ROLE_USER","parts":[` + repeated(n, `{"text":"a"}`) + `]}}`
	}, 65},
	"arguments of MCP":      {"/mcp", func(n int) string { return message + `[` + repeated(n, `1`) + `]}}` }, 1_000},
	"deep arguments of MCP": {"/mcp", func(n int) string { return message + nested(n, `{"a":`, `1`, `}`) + `}}` }, 20_000},
	"a batch of MCP":        {"/mcp", func(n int) string { return `[` + repeated(n, `{"jsonrpc":"2.0","id":1,"method":"ping"}`) + `]` }, 1_000},
	"a deep body":           {"/v1/sessions", func(n int) string { return nested(n, `{"turnOptions":`, `1`, `}`) }, 20_000},
	"a deep list":           {"/v1/sessions", func(n int) string { return nested(n, `[`, ``, `]`) }, 20_000},
	"a list without an end": {"/v1/sessions/x/turns", func(n int) string { return `{"content":[` + repeated(n, `{}`) }, 20_000},
	"a name of many bytes":  {"/v1/sessions/x/turns", func(n int) string { return `{"` + strings.Repeat(`\u0001`, n) + `":1}` }, 20_000},
	"a text of many bytes":  {"/v1/sessions", func(n int) string { return `{"agent":"` + strings.Repeat(`\u0001`, n) + `"}` }, 20_000},
	"a key of many bytes":   {"/v1/sessions", func(n int) string { return `{"labels":{"` + strings.Repeat(`\u0001`, n) + `":""}}` }, 20_000},
	"a deep parameter":      {"/v1/sessions", func(n int) string { return `{"turnOptions":{"parameters":{"a":` + nested(n, `[`, `1`, `]`) + `}}}` }, 20_000},
	"labels of many bytes": {"/v1/sessions", func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"%d":"%s"`, i, strings.Repeat("a", 1000)))
		}
		return `{"labels":{` + strings.Join(all, ",") + `}}`
	}, 33},
	"servers that break rules": {"/v1/sessions", func(n int) string {
		return `{"mcpServers":[` + repeated(n, `{"name":"`+strings.Repeat(" ", 5000)+`"}`) + `]}`
	}, 16},
	"content that breaks rules": {"/v1/sessions/x/turns", func(n int) string {
		return `{"content":[` + repeated(n, `{"image":{"mediaType":"`+strings.Repeat(`\u0001`, 2000)+`"}}`) + `]}`
	}, 32},
	"half surrogates":         {"/v1/sessions/x/turns", func(n int) string { return `{"text":"` + strings.Repeat(`\ud83d`, n) + `"}` }, 20_000},
	"bytes that are no UTF-8": {"/v1/sessions/x/turns", func(n int) string { return `{"text":"` + strings.Repeat("\xff", n) + `"}` }, 20_000},
	"white space":             {"/v1/sessions/x/turns", func(n int) string { return strings.Repeat(" ", n) + `{"content":[{}]}` }, 200_000},
	"Anthropic's messages": {"/anthropic/v1/messages", func(n int) string {
		return `{"model":"none","max_tokens":1,"messages":[` + repeated(n, `{"role":"user","content":"a"}`) + `]}`
	}, 10_000},
	"OpenAI's input": {"/openai/v1/responses", func(n int) string {
		return `{"model":"none","input":[` + repeated(n, `{"role":"user","content":"a"}`) + `]}`
	}, 10_000},
	"OpenAI's chat messages": {"/openai/v1/chat/completions", func(n int) string {
		return `{"model":"none","messages":[` + repeated(n, `{"role":"user","content":"a"}`) + `]}`
	}, 10_000},
	"rules to explain": {"/v1/profiles/full:explain", func(n int) string {
		return `{"tool":"Bash","argumentsJson":"{}","filters":[{"allow":[` + repeated(n, `"Bash(ls *)"`) + `]}]}`
	}, 1_025},
}

// thread returns the body of a run of AG-UI with these messages.
func thread(messages string) string {
	return `{"threadId":"t","runId":"r","messages":[` + messages + `]}`
}

func TestBodiesCostWhatTheirSizeSays(t *testing.T) {
	s := serve(t)
	for what, f := range forms {
		once, twice := request{"REST", f.path, http.MethodPost, []byte(f.body(f.n))}, request{"REST", f.path, http.MethodPost, []byte(f.body(2 * f.n))}
		if a := s.refuse(t, once, twice); a.status == http.StatusNotFound && strings.Contains(a.text, "PATH_NOT_FOUND") {
			t.Errorf("%s: %s", what, a.text)
		}
		if t.Failed() {
			t.Fatalf("with %s", what)
		}
	}
}

func TestAnOpenRPCReadsLittleOverTheWeb(t *testing.T) {
	s := serve(t)
	const fire = "/fairlead.session.v1.TriggerService/FireTrigger"
	a := s.ask(t, request{"gRPC-Web", fire, http.MethodPost, webFrame(make([]byte, 1<<20))})
	if !strings.Contains(a.text, "grpc-status: 3") || !strings.Contains(a.text, "larger than") {
		t.Errorf("1 MiB: %q", a.text)
	}
	if a = s.ask(t, request{"gRPC-Web", fire, http.MethodPost, webFrame([]byte{0x0a, 0})}); strings.Contains(a.text, "larger than") {
		t.Errorf("2 bytes: %q", a.text)
	}
}

func TestABodyBeyondTheBoundOfItsPathIsAnswered(t *testing.T) {
	s := serve(t)
	for path, size := range map[string]int{"/v1/sessions": 2 << 20, "/v1/sessions/x/turns": 17 << 20, "/v1/agui/coder": 17 << 20, "/mcp": 17 << 20} {
		a := s.ask(t, request{"REST", path, http.MethodPost, []byte(`{"title":"` + strings.Repeat("a", size) + `"}`)})
		if a.status != http.StatusRequestEntityTooLarge || !strings.Contains(a.text, "bytes") {
			t.Errorf("%s: %d %.300s", path, a.status, a.text)
		}
	}
}

// TestNoAnswerRepeatsALongID sends ids that each message of a streamed answer would repeat.
func TestNoAnswerRepeatsALongID(t *testing.T) {
	s := serve(t)
	call := func(id, token string) string {
		return strings.Replace(strings.Replace(message, `"id":1`, `"id":`+id, 1), `"_meta":{`, `"_meta":{"progressToken":`+token+`,`, 1) + `{"file_path":"a","content":"b"}}}`
	}
	send := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]}}}`
	}
	long, most := `"`+strings.Repeat("a", 100_000)+`"`, `"`+strings.Repeat("a", 1000)+`"`
	for what, c := range map[string]struct{ path, body, want string }{
		"A2A":                      {"/a2a/coder", send(long), "at most 1024 bytes"},
		"A2A, a long number":       {"/a2a/coder", send(strings.Repeat("1", 100_000)), "at most 1024 bytes"},
		"MCP":                      {"/mcp", call(long, "1"), "at most 1024"},
		"MCP, a long number":       {"/mcp", call(strings.Repeat("1", 100_000), "1"), "at most 1024"},
		"MCP, in a batch":          {"/mcp", "[" + call(long, "1") + "]", "at most 1024"},
		"MCP, a token of progress": {"/mcp", call("1", long), "at most 1024"},
		"MCP, as long as may be":   {"/mcp", call(most, most), `"id":"aaa`},
	} {
		a := s.ask(t, request{"REST", c.path, http.MethodPost, []byte(c.body)})
		if len(a.text) > maxAnswer || !strings.Contains(a.text, c.want) {
			t.Errorf("%s: %d bytes: %.300s", what, len(a.text), a.text)
		}
	}
}

// TestMemoryOfAVeryLongList sends the list that took 3.8 GB once.
func TestMemoryOfAVeryLongList(t *testing.T) {
	prove.Only(t, "it needs some hundred MB")
	s := serve(t)
	for _, path := range []string{"/v1/sessions/x/turns", "/v1/sessions/x/turns:stream"} {
		body := `{"text":"x","content":[` + repeated(4_000_000, `{}`) + `]}`
		cost, a := s.allocated(t, request{"REST", path, http.MethodPost, []byte(body)})
		if a.status != http.StatusBadRequest || len(a.text) > maxAnswer || cost > 12*uint64(len(body)) {
			t.Errorf("%s: %d bytes cost %d, %d %.300s", path, len(body), cost, a.status, a.text)
		}
	}
}

func TestNoGoroutineOutlivesItsClient(t *testing.T) {
	s := serve(t)
	s.ask(t, request{"REST", "/v1/sessions", http.MethodPost, []byte(`{"session":{"agent":"coder"}}`)}) // what starts once has started
	s.Client.CloseIdleConnections()
	for !allBegun() {
		runtime.Gosched() // a busy machine begins the server's own loops late
	}
	before := goleak.IgnoreCurrent()
	for what, f := range forms {
		for _, leave := range []func(context.CancelFunc, *http.Request) *http.Request{leaveInTheBody, leaveBehindTheBody} {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+f.path, strings.NewReader(f.body(f.n)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			for name, value := range mcpHeaders(f.path) {
				req.Header.Set(name, value)
			}
			if resp, err := s.Client.Do(leave(cancel, req)); err == nil { // it was answered before
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			} else if ctx.Err() == nil {
				t.Errorf("%s: %v", what, err)
			}
			cancel()
		}
	}
	s.Client.CloseIdleConnections()
	// A sandbox for the next session is no part of a request, and the loops of the dispatcher may begin late.
	const session = "github.com/fairlead/fairlead/services/session/internal/"
	if err := goleak.Find(before, goleak.IgnoreAnyFunction(session+"dispatch.(*Dispatcher).Run.func1"), goleak.IgnoreAnyFunction(session+"dispatch.(*Dispatcher).Run.func2"),
		goleak.IgnoreAnyFunction(session+"store/plan.(*Broadcast).Listen.func1"), goleak.IgnoreAnyFunction("github.com/fairlead/fairlead/services/sandbox/internal/runner/pool.(*sandbox).follow")); err != nil {
		t.Error(err)
	}
}

// allBegun reports whether the loops that each service begins last have begun.
func allBegun() bool {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Contains(stacks, []byte("session/internal/dispatch.(*Dispatcher).Run(")) && bytes.Contains(stacks, []byte("tools/internal/operation.(*Manager).Run("))
}

// leaveInTheBody has the client leave when it has sent half of its request.
func leaveInTheBody(leave context.CancelFunc, r *http.Request) *http.Request {
	r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, r.ContentLength/2), leaving(leave)))
	return r
}

// leaving is the end of a body at which the client leaves.
type leaving context.CancelFunc

// Read implements io.Reader.
func (l leaving) Read([]byte) (int, error) {
	l()
	return 0, fmt.Errorf("the client leaves: %w", context.Canceled)
}

// leaveBehindTheBody has the client leave when it has sent its request.
func leaveBehindTheBody(leave context.CancelFunc, r *http.Request) *http.Request {
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { leave() }}))
}
