package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func text(r *sdk.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}

// call calls a tool and returns its result.
func call(t *testing.T, c *sdk.ClientSession, tool string, arguments map[string]any) *sdk.CallToolResult {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

func TestAClientListsAndCallsTools(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	eras(t, func(t *testing.T, revision string) {
		c := s.connect(t, "ann", "/mcp", revision, nil)
		var names []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
			if tool.Description == "" || tool.InputSchema == nil || tool.Annotations.ReadOnlyHint != (tool.Name == "Read") {
				t.Errorf("the tool is %+v", tool)
			}
		}
		if want := []string{"Bash", "Read", "Write"}; !slices.Equal(names, want) {
			t.Errorf("the tools are %v", names)
		}
		if r := call(t, c, "Write", map[string]any{"file_path": revision + ".txt", "content": "hello"}); r.IsError {
			t.Errorf("Write: %s", text(r))
		}
		r := call(t, c, "Bash", map[string]any{"command": "cat " + revision + ".txt"})
		turn, _ := r.Meta["fairlead.dev/turn"].(string)
		if r.IsError || !strings.Contains(text(r), "hello") || !strings.HasPrefix(turn, "sessions/") {
			t.Errorf("Bash: %s, %v", text(r), r.Meta)
		}
		got, err := s.all.GetTurn(t.Context(), &sessionv1.GetTurnRequest{Name: turn})
		if err != nil || got.Turn.User != "ann" || got.Turn.Call.GetTool() != "Bash" || got.Turn.Steps != 0 {
			t.Errorf("the turn is %v, %v", got, err)
		}
		if r := call(t, c, "Read", map[string]any{"file_path": "nothing.txt"}); !r.IsError || !strings.Contains(text(r), "nothing.txt") {
			t.Errorf("Read of nothing: %t %s", r.IsError, text(r))
		}
		if r := call(t, c, "Read", map[string]any{"path": 7}); !r.IsError || !strings.Contains(text(r), "file_path") {
			t.Errorf("Read with wrong arguments: %t %s", r.IsError, text(r))
		}
		var wrong *jsonrpc.Error
		if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "Nothing"}); !errors.As(err, &wrong) || wrong.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("a tool of nothing: %v", err)
		}
	})
	found, err := s.all.ListSessions(t.Context(), &sessionv1.ListSessionsRequest{User: "users/ann"})
	if err != nil || len(found.Sessions) != 1 || found.Sessions[0].Key != "mcp" || found.Sessions[0].Agent != "agents/helper" {
		t.Errorf("the sessions are %v, %v", found, err)
	}
}

func TestPathsNameAgentsAndSessions(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c := s.connect(t, "ann", "/mcp/agents/asker", modern, nil)
	if listed, err := c.ListTools(t.Context(), nil); err != nil || len(listed.Tools) != 2 {
		t.Errorf("the tools of the agent are %v, %v", listed, err)
	}
	made, err := s.all.ListSessions(t.Context(), &sessionv1.ListSessionsRequest{User: "users/ann"})
	if err != nil || len(made.Sessions) != 1 || made.Sessions[0].Key != "mcp/asker" {
		t.Fatalf("the sessions are %v, %v", made, err)
	}
	name := made.Sessions[0].Name
	again := s.connect(t, "ann", "/mcp/"+name, modern, nil)
	if listed, err := again.ListTools(t.Context(), nil); err != nil || len(listed.Tools) != 2 {
		t.Errorf("the tools of the session are %v, %v", listed, err)
	}
	if _, err := s.all.DeleteSession(t.Context(), &sessionv1.DeleteSessionRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	until(t, "the user has another session", func() bool {
		r := call(t, c, "Read", map[string]any{"file_path": "a"})
		return strings.Contains(text(r), "File does not exist")
	})
}

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not in time: %s", what)
		}
	}
}

// person answers what a client is asked.
type person struct {
	action string
	mu     sync.Mutex
	asked  []string
}

func (p *person) options() *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, r.Params.Message)
		return &sdk.ElicitResult{Action: p.action, Content: map[string]any{}}, nil
	}}
}

func TestACallThatNeedsAnApproval(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	eras(t, func(t *testing.T, revision string) {
		for action, failed := range map[string]bool{"accept": false, "decline": true, "cancel": true} {
			t.Run(action, func(t *testing.T) {
				p := &person{action: action}
				c := s.connect(t, "ann", "/mcp/agents/asker", revision, p.options())
				r := call(t, c, "Write", map[string]any{"file_path": "a.txt", "content": action})
				if r.IsError != failed {
					t.Errorf("the result is %s", text(r))
				}
				if len(p.asked) != 1 || !strings.Contains(p.asked[0], `"a.txt"`) {
					t.Errorf("the person was asked %q", p.asked)
				}
				turn, _ := r.Meta["fairlead.dev/turn"].(string)
				got, err := s.all.GetTurn(t.Context(), &sessionv1.GetTurnRequest{Name: turn})
				if err != nil || (got.Turn.CallResult.Outcome == sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED) != failed {
					t.Errorf("the turn is %v, %v", got, err)
				}
			})
		}
	})
}

// A tool that asks a person asks the client's.
func TestAToolThatAsksAQuestion(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	questions := map[string]any{"questions": []any{
		map[string]any{"question": "Which color?", "header": "Color", "multiSelect": false, "options": []any{
			map[string]any{"label": "red", "description": "warm"}, map[string]any{"label": "blue", "description": "cold"},
		}},
	}}
	eras(t, func(t *testing.T, revision string) {
		for action, want := range map[string]string{"accept": "blue", "decline": "does not want to answer"} {
			asked := 0
			c := s.connect(t, "ann", "/mcp/agents/curious", revision, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked++
				if form, err := json.Marshal(r.Params.RequestedSchema); err != nil || !strings.Contains(string(form), "Which color?") || !strings.Contains(string(form), "blue") {
					t.Errorf("the form is %s, %v", form, err)
				}
				if action == "accept" {
					return &sdk.ElicitResult{Action: action, Content: map[string]any{"q1": "blue"}}, nil
				}
				return &sdk.ElicitResult{Action: action}, nil
			}})
			if r := call(t, c, "AskUserQuestion", questions); asked != 1 || !strings.Contains(text(r), want) {
				t.Errorf("%s: asked %d times, and the result is %t %s", action, asked, r.IsError, text(r))
			}
		}
	})
}

// A client that cannot ask its person waits, and learns where the answer can be given.
func TestACallThatIsApprovedElsewhere(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	eras(t, func(t *testing.T, revision string) {
		said := make(chan string, 10)
		c := s.connect(t, "ann", "/mcp/agents/asker", revision, &sdk.ClientOptions{
			Capabilities:                &sdk.ClientCapabilities{},
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { said <- r.Params.Message },
		})
		var done sync.WaitGroup
		defer done.Wait()
		done.Go(func() {
			message := <-said
			if !strings.Contains(message, "approvals:resolve") {
				t.Errorf("the client hears %q", message)
			}
			found, err := s.all.ListSessions(t.Context(), &sessionv1.ListSessionsRequest{User: "users/ann"})
			if err != nil {
				t.Error(err)
				return
			}
			asked := s.asked(t, found.Sessions[0].Name)
			_, err = s.all.ResolveApproval(t.Context(), &sessionv1.ResolveApprovalRequest{Parent: found.Sessions[0].Name, CallId: asked.CallId, Digest: asked.Digest, Approved: true})
			if err != nil {
				t.Error(err)
			}
		})
		p := &sdk.CallToolParams{Name: "Write", Arguments: map[string]any{"file_path": "a.txt", "content": "x"}}
		p.SetProgressToken("p1")
		r, err := c.CallTool(t.Context(), p)
		if err != nil || r.IsError {
			t.Errorf("the result is %v, %v", r, err)
		}
	})
}

// asked returns the last approval that a session waits for.
func (s *server) asked(t *testing.T, session string) (last *sessionv1.ApprovalRequested) {
	t.Helper()
	stream, err := s.all.ListEvents(t.Context(), &sessionv1.ListEventsRequest{Parent: session, PageSize: 1000})
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, e := range stream.Events {
		if a := e.GetApprovalRequested(); a != nil {
			last = a
		}
	}
	return last
}

// A client that cancels stops its own call, and no other turn of the session.
func TestACancelledCallIsStopped(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	eras(t, func(t *testing.T, revision string) {
		said := make(chan string, 100)
		c := s.connect(t, "ann", "/mcp", revision, &sdk.ClientOptions{
			Capabilities:                &sdk.ClientCapabilities{},
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { said <- r.Params.Message },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			p := &sdk.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": "echo begun; sleep 60; echo never > never.txt"}}
			p.SetProgressToken("p1")
			if _, err := c.CallTool(ctx, p); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled call: %v", err)
			}
		})
		if got := <-said; got != "begun" {
			t.Errorf("the client hears %q", got)
		}
		// Behind it waits another client's call.
		other := s.connect(t, "ann", "/mcp", revision, nil)
		done.Go(func() {
			if r := call(t, other, "Bash", map[string]any{"command": "ls; echo then"}); r.IsError || !strings.Contains(text(r), "then") || strings.Contains(text(r), "never.txt") {
				t.Errorf("the other call: %s", text(r))
			}
		})
		cancel()
		done.Wait()
		if r := call(t, other, "Bash", map[string]any{"command": "echo still here"}); !strings.Contains(text(r), "still here") {
			t.Errorf("after the cancelled call: %s", text(r))
		}
	})
}
