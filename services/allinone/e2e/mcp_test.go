package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wikiServer is a streamable HTTP server of the official SDK that knows one thing.
type wikiServer struct {
	address string
	sdk     *mcp.Server
	http    *http.Server
	served  chan error

	mu   sync.Mutex
	keys []string // the headers Authorization of its requests
}

func (w *wikiServer) start(t *testing.T) {
	t.Helper()
	at := w.address
	if at == "" {
		at = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	w.address = listener.Addr().String()
	w.sdk = mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "1"}, nil)
	w.sdk.AddTool(&mcp.Tool{Name: "lookup", Description: "looks a topic up", InputSchema: json.RawMessage(`{"type":"object","properties":{"topic":{"type":"string"}}}`)},
		func(_ context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "thirty days: " + string(q.Params.Arguments)}}}, nil
		})
	w.sdk.AddTool(&mcp.Tool{Name: "port", Description: "asks for a port", InputSchema: json.RawMessage(`{"type":"object"}`)}, askPort)
	sdk := w.sdk
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)
	w.http = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		w.mu.Lock()
		w.keys = append(w.keys, q.Header.Get("Authorization"))
		w.mu.Unlock()
		h.ServeHTTP(rw, q)
	})}
	w.served = make(chan error, 1)
	go func() { w.served <- w.http.Serve(listener) }()
}

// askPort asks the person behind the call for a number.
func askPort(_ context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answer, ok := q.Params.InputResponses["port"].(*mcp.ElicitResult)
	if !ok {
		form := json.RawMessage(`{"type":"object","properties":{"port":{"type":"integer"}},"required":["port"]}`)
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"port": &mcp.ElicitParams{Message: "Which port?", RequestedSchema: form}}, RequestState: "asked"}, nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("the port: %s %v", answer.Action, answer.Content["port"])}}}, nil
}

func (w *wikiServer) stop() {
	for s := range w.sdk.Sessions() {
		_ = s.Close()
	}
	_ = w.http.Close()
	if err := <-w.served; !errors.Is(err, http.ErrServerClosed) {
		panic(err)
	}
}

// mcpState waits until a server of a session has a state.
func (s *system) mcpState(t *testing.T, session, server, want string) {
	t.Helper()
	var last string
	for until := time.Now().Add(60 * time.Second); time.Now().Before(until); pause(t.Context()) {
		last = s.call(t, http.MethodGet, "/v1/"+session+"/mcp", "").body
		var status struct {
			Servers []struct{ Name, State string }
		}
		_ = json.Unmarshal([]byte(last), &status)
		for _, x := range status.Servers {
			if x.Name == server && x.State == "MCP_SERVER_STATE_"+want {
				return
			}
		}
	}
	t.Fatalf("%s is not %s: %s", server, want, last)
}

// changes are the events of servers in a turn, as server and state.
func mcpChanges(frames []frame) []string {
	var all []string
	for _, f := range frames {
		if f.event == "mcp_server.changed" {
			all = append(all, f.field("mcpServerChanged", "server")+" "+strings.TrimPrefix(f.field("mcpServerChanged", "state"), "MCP_SERVER_STATE_"))
		}
	}
	slices.Sort(all)
	return all
}

// TestATurnUsesMCPServersAndSurvivesTheirDeath has a server on the network and one in the sandbox.
func TestATurnUsesMCPServersAndSurvivesTheirDeath(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("testdata/mcpserver.py")
	if err != nil {
		t.Fatal(err)
	}
	shapes(t, func(t *testing.T, o options) {
		wiki := &wikiServer{}
		wiki.start(t)
		t.Cleanup(func() { wiki.stop() })
		o.scenario, o.tools = "testdata/mcp.yaml", "mcp-allow-private: [127.0.0.0/8]"
		o.agents = "  clerk:\n    profile: full\n    tools: [Bash]\n    mcp-servers:\n      local: {command: python3, args: [server.py]}\n"
		s := start(t, o)
		const secret = "hush-hush-hush"
		if r := s.call(t, http.MethodPut, "/v1/users/me/variables/WIKI_TOKEN", `{"value":"`+secret+`"}`); r.code != http.StatusOK {
			t.Fatalf("set the variable: %d %s", r.code, r.body)
		}
		made := s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"clerk","mcpServers":[{"name":"wiki","http":{"url":"http://`+wiki.address+`","headers":{"Authorization":"Bearer ${WIKI_TOKEN}"}}}]}`)
		var named struct{ Name string }
		if err := json.Unmarshal([]byte(made.body), &named); err != nil || made.code != http.StatusOK {
			t.Fatalf("create a session: %d %s", made.code, made.body)
		}
		session := named.Name
		if r := s.call(t, http.MethodPut, "/v1/"+session+"/files/server.py", string(program), "Content-Type", "application/octet-stream"); r.code != http.StatusCreated {
			t.Fatalf("write the server: %d %s", r.code, r.body)
		}
		turn := func(text string, changes []string, want ...string) {
			t.Helper()
			frames := s.turn(t, session, text)
			last(t, frames, "COMPLETE")
			if got := mcpChanges(frames); !slices.Equal(got, changes) {
				t.Errorf("%s: the log says %q, not %q", text, got, changes)
			}
			got := strings.Join(results(frames), "\n")
			for _, w := range want {
				if !strings.Contains(got, w) {
					t.Errorf("%s: %q is not in what the model reads: %s", text, w, got)
				}
			}
		}
		turn("ask both", []string{"local CONNECTED", "wiki CONNECTED"}, `thirty days: {"topic":"leave"}`, "HELLO")
		wiki.stop()
		s.mcpState(t, session, "wiki", "FAILED")
		turn("ask the wiki", []string{"wiki FAILED"}, "The MCP server wiki cannot be used now")
		wiki.start(t)
		s.mcpState(t, session, "wiki", "CONNECTED")
		turn("ask both", []string{"wiki CONNECTED"}, "thirty days", "HELLO")
		s.turn(t, session, "end the local server") // its events depend on how fast the command is started again
		s.mcpState(t, session, "local", "CONNECTED")
		frames := s.turn(t, session, "ask both")
		last(t, frames, "COMPLETE")
		if got := strings.Join(results(frames), "\n"); !strings.Contains(got, "HELLO") {
			t.Errorf("after the death of the command: %s", got)
		}
		s.hides(t, secret)
		wiki.mu.Lock()
		defer wiki.mu.Unlock()
		if !slices.Contains(wiki.keys, "Bearer "+secret) {
			t.Errorf("the server was called with %q", wiki.keys)
		}
	})
}
