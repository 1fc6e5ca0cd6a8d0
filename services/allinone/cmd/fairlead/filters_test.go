package main

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

func TestRulesOfAgentsAndSessionsNarrowTheProfile(t *testing.T) {
	t.Parallel()
	a := startAsker(t)
	conn, err := rpc.Dial(a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	sessions := sessionv1.NewSessionServiceClient(conn)
	create := func(deny ...string) (*sessionv1.Session, error) {
		r := &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "agents/narrow"}}
		if len(deny) > 0 {
			r.Session.Permissions = &commonv1.PermissionRules{Deny: deny}
		}
		made, err := sessions.CreateSession(t.Context(), r)
		return made.GetSession(), err
	}
	open, err := create()
	if err != nil {
		t.Fatal(err)
	}
	narrower, err := create("Write(./other*)")
	if err != nil {
		t.Fatal(err)
	}
	fork, err := sessions.ForkSession(t.Context(), &sessionv1.ForkSessionRequest{Name: narrower.Name})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		denied     map[*sessionv1.Session]string // the rule; none: it is allowed
	}{
		{"the agent's rule", "secret.txt", map[*sessionv1.Session]string{open: "./secret*", narrower: "./secret*", fork.Session: "./secret*"}},
		{"the session's rule", "other.txt", map[*sessionv1.Session]string{open: "", narrower: "./other*", fork.Session: "./other*"}},
		{"no rule", "open.txt", map[*sessionv1.Session]string{open: "", narrower: ""}},
		{"a subagent, by the agent's rule", "writer secret", map[*sessionv1.Session]string{open: "./secret*", narrower: "./secret*"}},
		{"a subagent, by the session's rule", "writer other", map[*sessionv1.Session]string{open: "", narrower: "./other*"}},
		{"a subagent, by no rule", "writer open", map[*sessionv1.Session]string{narrower: ""}},
		{"another agent as subagent, by the first one's rule", "named secret", map[*sessionv1.Session]string{open: "./secret*"}},
		{"another agent as subagent, by the session's rule", "named other", map[*sessionv1.Session]string{narrower: "./other*"}},
		{"another agent as subagent, by its own rule", "named third", map[*sessionv1.Session]string{open: "./third*"}},
		{"another agent as subagent, by no rule", "named open", map[*sessionv1.Session]string{narrower: ""}},
	} {
		for s, rule := range c.denied {
			end := runIn(t.Context(), t, sessions, s.Name, c.text)
			if got := end.GetFinalText(); (rule != "") != strings.Contains(got, "Write("+rule+")") || (rule == "") != strings.Contains(got, ".txt") {
				t.Errorf("%s in %v: %q; want the rule %q", c.name, s.Permissions, got, rule)
			}
		}
	}
	calls, err := sessionv1.NewSessionToolServiceClient(conn).CallTool(t.Context(), &sessionv1.CallToolRequest{
		Parent: narrower.Name, Tool: "Write", ArgumentsJson: `{"file_path":"/workspace/other.txt","content":"x"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := calls.Recv()
		if err != nil {
			t.Fatalf("a direct call: %v", err)
		}
		if done := r.GetEvent().GetToolCallFinished(); done != nil {
			if done.Outcome != sessionv1.ToolOutcome_TOOL_OUTCOME_DENIED {
				t.Errorf("a direct call ended %v", done)
			}
			break
		}
	}
	_, err = create("Write", "Write(")
	bad, _ := apierr.Detail[*errdetails.BadRequest](err)
	if v := bad.GetFieldViolations(); len(v) != 1 || v[0].Field != "session.permissions.deny[1]" {
		t.Errorf("a session with a bad rule: %v", err)
	}
	_, err = sessionv1.NewAgentServiceClient(conn).CreateAgent(t.Context(), &sessionv1.CreateAgentRequest{
		Spec: &sessionv1.AgentSpec{Profile: "full", Tools: []string{"Read"}, Permissions: &commonv1.PermissionRules{Ask: []string{"Write("}}},
	})
	bad, _ = apierr.Detail[*errdetails.BadRequest](err)
	if v := bad.GetFieldViolations(); len(v) != 1 || v[0].Field != "spec.permissions.ask[0]" {
		t.Errorf("an agent with a bad rule: %v", err)
	}
}

// runIn runs a turn in a session.
func runIn(ctx context.Context, t *testing.T, c sessionv1.SessionServiceClient, session, text string) *sessionv1.TurnFinished {
	t.Helper()
	stream, err := c.RunTurn(ctx, &sessionv1.RunTurnRequest{Parent: session, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if end := r.GetEvent().GetTurnFinished(); end != nil {
			return end
		}
	}
}
