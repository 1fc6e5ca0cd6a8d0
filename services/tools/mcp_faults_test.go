package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/types/known/durationpb"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

const unknown = toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN

// breaking forwards to a server, and lets a test spoil the answers of calls.
func breaking(t *testing.T, r *sdkServer, spoil func(w http.ResponseWriter, calls int64) bool) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) && spoil(w, calls.Add(1)) {
			return
		}
		r.http.Config.Handler.ServeHTTP(w, q)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL, calls
}

// cutOff ends the connection within a response.
func cutOff(w http.ResponseWriter, _ int64) bool {
	conn, out, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = out.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"")
	_ = out.Flush()
	_ = conn.Close()
	return true
}

func TestABrokenResponseNeverRepeatsACall(t *testing.T) {
	status := func(code int, body string) func(http.ResponseWriter, int64) bool {
		return func(w http.ResponseWriter, _ int64) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return true
		}
	}
	for name, c := range map[string]struct {
		spoil func(http.ResponseWriter, int64) bool
		want  toolsv1.CallOutcome
	}{
		"cut off":        {cutOff, unknown},
		"no JSON":        {status(200, "{"), unknown},
		"a flood":        {status(200, `{"jsonrpc":"2.0","id":1,"result":"`+strings.Repeat("x", 17<<20)+`"}`), unknown},
		"bad gateway":    {status(502, "no"), unknown},
		"server error":   {status(500, "no"), unknown},
		"too many":       {status(429, "no"), failed},
		"forbidden":      {status(403, "no"), failed},
		"a bad request":  {status(400, "no"), failed},
		"an empty reply": {status(200, ""), unknown},
	} {
		for era, modern := range eras {
			t.Run(name+" "+era, func(t *testing.T) {
				r, f := newRemote(t, modern), local(t)
				r.tool("t", object, says("done"))
				url, calls := breaking(t, r, c.spoil)
				got := f.must(mcpCall("c", "mcp__x__t", `{}`, webServer("x", url)), c.want)
				if n := calls.Load(); n != 1 {
					t.Errorf("the call was made %d times: %s", n, got.text())
				}
			})
		}
	}
}

func TestOnlyATrustedServersCallsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		hints   mcp.ToolAnnotations
		trusted bool
		calls   int64
	}{
		"an untrusted one":       {mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}, false, 1},
		"a trusted one":          {mcp.ToolAnnotations{IdempotentHint: true}, true, 2},
		"one that reads":         {mcp.ToolAnnotations{ReadOnlyHint: true}, true, 2},
		"one without a hint":     {mcp.ToolAnnotations{}, true, 1},
		"one with another claim": {mcp.ToolAnnotations{Title: "safe"}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, f := newRemote(t, true), local(t)
			r.sdk.AddTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(object), Annotations: &c.hints}, says("done"))
			url, calls := breaking(t, r, func(w http.ResponseWriter, n int64) bool { return n == 1 && cutOff(w, n) })
			s := webServer("x", url)
			s.Trusted = c.trusted
			want := unknown
			if c.calls == 2 {
				want = ok
			}
			f.must(mcpCall("c", "mcp__x__t", `{}`, s), want)
			if calls.Load() != c.calls {
				t.Errorf("the call was made %d times, want %d", calls.Load(), c.calls)
			}
			_, tools, _ := f.list(0, nil, s)
			if got := tools[0]; got.GetReadOnly() != (c.trusted && c.hints.ReadOnlyHint) || got.GetParallel() != got.GetReadOnly() || got.GetIdempotent() != (c.calls == 2) {
				t.Errorf("the tool is %v", got)
			}
		})
	}
}

func TestACancelledCallIsCancelledAtTheServer(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			begun, ended := make(chan bool), make(chan bool)
			r.tool("wait", object, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				close(begun)
				<-ctx.Done()
				close(ended)
				return nil, ctx.Err()
			})
			q := mcpCall("c", "mcp__x__wait", `{}`, r.as("x"))
			stream, err := f.calls.CallTool(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			<-begun
			if _, err := f.calls.CancelCall(t.Context(), &toolsv1.CancelCallRequest{Call: q.GetCall()}); err != nil {
				t.Fatal(err)
			}
			<-ended
			if a, err := drain(stream); err != nil || a.result.GetOutcome() != toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED {
				t.Errorf("got %v, %v", a.result, err)
			}
		})
	}
}

func TestACallThatTakesTooLongIsCancelledAtTheServer(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	ended := make(chan bool)
	r.tool("wait", object, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	s := r.as("x")
	s.Timeout = durationpb.New(100 * time.Millisecond)
	if got := f.must(mcpCall("c", "mcp__x__wait", `{}`, s), unknown); !strings.Contains(got.text(), "took longer") {
		t.Errorf("got %q", got.text())
	}
	<-ended
}

func TestProgressOfAServerIsThatOfTheCall(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			most := 7
			r.tool("work", object, func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for i := range 500 {
					n := &mcp.ProgressNotificationParams{ProgressToken: q.Params.GetProgressToken(), Progress: float64(i % most), Message: fmt.Sprint("part ", i)}
					if err := q.Session.NotifyProgress(ctx, n); err != nil {
						return nil, err
					}
				}
				return &mcp.CallToolResult{}, nil
			})
			got := f.must(mcpCall("c", "mcp__x__work", `{}`, r.as("x")), ok)
			if want := []string{"part 0", "part 1", "part 2", "part 3", "part 4", "part 5", "part 6"}; !slices.Equal(got.progress, want) {
				t.Errorf("got %q", got.progress)
			}
			most = 500 // a flood
			got = f.must(mcpCall("flood", "mcp__x__work", `{}`, r.as("x")), ok)
			if n := len(got.progress); n < 20 || n > 100 || got.progress[19] != "part 19" || got.progress[n-1] != "part 499" {
				t.Errorf("got %q", got.progress)
			}
		})
	}
}

func TestAListThatChangesInACall(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			r.tool("change", object, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				r.tool("added", object, says("new"))
				r.sdk.RemoveTools("change")
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "changed"}}}, nil
			})
			if got := f.must(mcpCall("c1", "mcp__x__change", `{}`, r.as("x")), ok); got.text() != "changed" {
				t.Errorf("got %q", got.text())
			}
			for n := 0; ; n++ { // the notice is on its way
				names, _, _ := f.list(0, nil, r.as("x"))
				if slices.Equal(names, []string{"mcp__x__added"}) {
					break
				}
				if t.Context().Err() != nil {
					t.Fatalf("got %v", names)
				}
			}
			f.must(mcpCall("c2", "mcp__x__added", `{}`, r.as("x")), ok)
			if got := f.must(mcpCall("c3", "mcp__x__change", `{}`, r.as("x")), failed); !strings.Contains(got.text(), "has no tool") {
				t.Errorf("got %q", got.text())
			}
		})
	}
}

func TestAServerThatForgetsItsToolIsAskedAnew(t *testing.T) {
	f := local(t)
	r := newRemote(t, true)
	r.sdk = mcp.NewServer(&mcp.Implementation{Name: "quiet"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}, // no notices
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs = 1_000_000 },
	})
	r.tool("old", object, says("old"))
	f.must(mcpCall("c1", "mcp__x__old", `{}`, r.as("x")), ok)
	r.sdk.RemoveTools("old")
	r.tool("young", object, says("young"))
	got := f.must(mcpCall("c2", "mcp__x__old", `{}`, r.as("x")), failed)
	if !strings.Contains(got.text(), "refused the call") {
		t.Errorf("got %q", got.text())
	}
	for {
		names, _, _ := f.list(0, nil, r.as("x"))
		if slices.Equal(names, []string{"mcp__x__young"}) {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("got %v", names)
		}
	}
}

func TestAServerThatRestartsIsUsedAgain(t *testing.T) {
	r, f := newRemote(t, false), local(t)
	r.tool("t", object, says("first"))
	f.must(mcpCall("c1", "mcp__x__t", `{}`, r.as("x")), ok)
	for s := range r.sdk.Sessions() {
		_ = s.Close()
	}
	if got := f.must(mcpCall("c2", "mcp__x__t", `{}`, r.as("x")), ok); got.text() != "first" {
		t.Errorf("got %q", got.text())
	}
}

// forgetful forwards to a server until the first call. From then on it has forgotten the session of every stream that
// is asked for, and answers the call with answer.
func forgetful(t *testing.T, r *sdkServer, answer func(w http.ResponseWriter, q *http.Request)) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	begun := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		switch call := bytes.Contains(body, []byte(`"tools/call"`)); {
		case call && calls.Add(1) == 1:
			close(begun)
			answer(w, q)
		case q.Method == http.MethodGet && calls.Load() > 0:
			w.WriteHeader(http.StatusNotFound)
		case q.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			select {
			case <-begun:
			case <-q.Context().Done():
			}
		default:
			r.http.Config.Handler.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL, calls
}

func TestACallIsNotRepeatedForASessionThatIsForgottenWhileItRuns(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"with the stream of the call": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 1\nretry: 1\ndata: \n\n")
		},
		"with another stream": func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-q.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, f := newRemote(t, false), local(t)
			r.tool("t", object, says("again"))
			url, calls := forgetful(t, r, answer)
			got := f.must(mcpCall("c", "mcp__x__t", `{}`, webServer("x", url)), unknown)
			if n := calls.Load(); n != 1 {
				t.Errorf("the call was made %d times: %s", n, got.text())
			}
		})
	}
}

func TestAServerOfTheFirstRevision(t *testing.T) {
	f := local(t)
	sdk := mcp.NewServer(&mcp.Implementation{Name: "old"}, nil)
	sdk.AddTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(object)}, says("by SSE"))
	s := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdk }, nil))
	defer s.Close()
	defer s.CloseClientConnections()
	spec := webServer("x", s.URL)
	spec.GetHttp().Sse = true
	if got := f.must(mcpCall("c", "mcp__x__t", `{}`, spec), ok); got.text() != "by SSE" {
		t.Errorf("got %q", got.text())
	}
	f.stop()
}

func TestHeadersStayWithTheirServer(t *testing.T) {
	f := local(t)
	seen := make(chan http.Header, 100)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		seen <- q.Header.Clone()
		w.WriteHeader(http.StatusNotFound)
	}))
	defer other.Close()
	own := make(chan http.Header, 100)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		own <- q.Header.Clone()
		http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
	}))
	defer first.Close()
	s := webServer("x", first.URL)
	s.GetHttp().Headers = map[string]string{"Authorization": "Bearer secret", "X-Key": "secret"}
	f.list(0, nil, s)
	if h := <-own; h.Get("Authorization") != "Bearer secret" || h.Get("X-Key") != "secret" {
		t.Errorf("the server got %v", h)
	}
	if h := <-seen; strings.Contains(fmt.Sprint(h), "secret") {
		t.Errorf("the other server got %v", h)
	}
}

func TestACallThatACrashInterruptedIsNotRepeated(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	begun := make(chan bool, 2)
	release := make(chan bool)
	r.tool("wait", object, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		begun <- true
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-release:
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "again"}}}, nil
		}
	})
	q := mcpCall("c", "mcp__x__wait", `{}`, r.as("x"))
	if _, err := f.calls.CallTool(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	<-begun
	f.stop()
	f.start()
	if got := f.must(q, unknown); !strings.Contains(got.text(), "interrupted") {
		t.Errorf("got %q", got.text())
	}
	if len(begun) > 0 {
		t.Error("the call was made again")
	}
}

func TestAnUnusedConnectionEnds(t *testing.T) {
	r := newRemote(t, false)
	r.tool("t", object, says("done"))
	f := newFixture(t, func(c *Config) {
		c.MCPAllowPrivate, c.MCPIdle, c.MCPConnections = []string{"127.0.0.1"}, time.Second, 1
	})
	f.must(mcpCall("c1", "mcp__x__t", `{}`, r.as("x")), ok)
	if n := len(slices.Collect(r.sdk.Sessions())); n != 1 {
		t.Fatalf("there are %d sessions", n)
	}
	// There is room for one: the unused one goes.
	f.must(mcpCall("c2", "mcp__y__t", `{}`, r.as("y")), ok)
	for len(slices.Collect(r.sdk.Sessions())) > 0 {
		if t.Context().Err() != nil {
			t.Fatal("the connection stays")
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a server tells nothing of its sessions' ends
	}
}

func TestManyMessagesAreNoHarm(t *testing.T) {
	f := local(t)
	s := rawServer(t, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`, `{"content":[{"type":"text","text":"end"}]}`)
	flood := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		rec := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(rec, q)
		if !strings.Contains(rec.Body.String(), `"end"`) {
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		out := bufio.NewWriter(w)
		for range 5_000 {
			fmt.Fprint(out, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"call-1\",\"progress\":1}}\n\n")
		}
		fmt.Fprintf(out, "data: %s\n\n", rec.Body.String())
		_ = out.Flush()
	}))
	defer flood.Close()
	got := f.must(mcpCall("c", "mcp__x__t", `{}`, webServer("x", flood.URL)), ok)
	if got.text() != "end" || got.pieces > 10 {
		t.Errorf("got %q in %d pieces", got.text(), got.pieces)
	}
}

func TestAServerThatHangsDelaysOneListAlone(t *testing.T) {
	prove.Only(t, "the first list waits for five seconds")
	f := local(t)
	hung := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-hung:
		case <-q.Context().Done():
		}
	}))
	defer s.Close()
	defer close(hung)
	f.list(0, nil, webServer("x", s.URL))
	begin := time.Now()
	_, _, states := f.list(0, nil, webServer("x", s.URL))
	if took := time.Since(begin); took > time.Second || !strings.HasPrefix(states[0].GetMessage(), "it is being connected") {
		t.Errorf("after %v the status is %v", took, states[0])
	}
	f.stop()
}
