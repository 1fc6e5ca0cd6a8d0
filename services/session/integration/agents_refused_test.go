package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

const noTelepathy = `agent "odd": tools: there is no tool "Telepathy"`

// CheckAgents implements CallService.
func (p *peers) CheckAgents(_ context.Context, r *toolsv1.CheckAgentsRequest) (*toolsv1.CheckAgentsResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	resp := &toolsv1.CheckAgentsResponse{}
	for _, a := range r.Agents {
		if slices.Contains(a.Tools, p.lacks) || slices.Contains(a.McpServers, p.lacks) || slices.Contains(a.GetPermissions().GetDeny(), p.lacks) { // the operator has the server
			resp.Faults = append(resp.Faults, &toolsv1.AgentFault{Agent: a.Agent, Field: "tools", Message: noTelepathy})
		}
	}
	return resp, nil
}

// lack makes a tool one that does not exist.
func (p *peers) lack(tool string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lacks = tool
}

// withOdd adds an agent with the tool Telepathy.
func withOdd(c *session.Config) {
	c.Agents["odd"] = agent.Spec{Profile: "full", Tools: []string{"Telepathy"}}
}

// refused waits until creating a session of an agent is refused, and returns the error.
func (f *fixture) refused(ctx context.Context, t *testing.T, agent string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: agent}})
		if err != nil {
			return err
		}
	}
}

func TestAnAgentWhoseToolDoesNotExistIsRefusedAndOthersWork(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [done]}]}", withOdd)
	created, err := f.CreateSession(t.Context(), &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "agents/odd"}})
	if err != nil {
		t.Fatal(err)
	}
	f.turn(t.Context(), t, created.Session.Name, "go")
	f.peers.lack("Telepathy")
	f.restart(t)
	check := func(what string, err error) {
		t.Helper()
		message := apierr.Message(err)
		if status.Code(err) != codes.FailedPrecondition || !strings.HasPrefix(message, noTelepathy) || !strings.Contains(message, "Correct session.agents") {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("a session", f.refused(t.Context(), t, "agents/odd"))
	_, err = f.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: created.Session.Name, Text: "go"})
	check("a turn", err)
	f.turn(t.Context(), t, f.session(t.Context(), t), "another agent works")
	f.peers.lack("")
	f.restart(t)
	f.turn(t.Context(), t, created.Session.Name, "go")
}
