// Package counter is the MCP servers of a chaos run. Their tool notes a line: one counts the lines itself, out of reach of
// all faults, and one appends them to a file from within the sandbox.
package counter

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// program is the source of the server in the sandbox: Python that speaks MCP on its standard input and output.
//
//go:embed local.py
var program string

// Server is the server on the network.
type Server struct {
	URL string

	http   *http.Server
	served chan error

	mu    sync.Mutex // guards what follows
	notes map[string]int
}

// Start runs the server until Close.
func Start(ctx context.Context) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + listener.Addr().String(), served: make(chan error, 1), notes: map[string]int{}}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	sdk.AddTool(&mcp.Tool{
		Name: "note", Description: "notes a line",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"line":{"type":"string"}},"required":["line"]}`),
	}, s.note)
	s.http = &http.Server{ReadHeaderTimeout: time.Minute, Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)}
	go func() { s.served <- s.http.Serve(listener) }()
	return s, nil
}

// note counts a line. It takes its time before and after, so that its caller can die in both.
func (s *Server) note(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Line string }
	if err := json.Unmarshal(q.Params.Arguments, &args); err != nil {
		return nil, err
	}
	pause(ctx)
	s.mu.Lock()
	s.notes[args.Line]++
	s.mu.Unlock()
	pause(ctx)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted " + args.Line}}}, nil
}

func pause(ctx context.Context) {
	timer := time.NewTimer(time.Duration(rand.IntN(200)) * time.Millisecond) //nolint:gosec // not a secret
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Notes returns how often each line was noted.
func (s *Server) Notes() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.notes)
}

// Config returns both servers as an agent's MCP servers, in YAML: counter on the network, and local in the sandbox.
func (s *Server) Config() string {
	return fmt.Sprintf("{counter: {url: %q}, local: {command: python3, args: [-c, %q]}}", s.URL, program)
}

// Close ends the server.
func (s *Server) Close() error {
	err := s.http.Close()
	if ended := <-s.served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("the MCP server: %w", ended))
	}
	return err
}
