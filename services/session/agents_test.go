package session

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// changing is a tools service that is away, then lacks something, then has it.
type changing struct {
	toolsv1.UnimplementedCallServiceServer
	asked  chan *toolsv1.CheckAgentsRequest
	answer chan error
}

func (c *changing) CheckAgents(_ context.Context, r *toolsv1.CheckAgentsRequest) (*toolsv1.CheckAgentsResponse, error) {
	c.asked <- r
	switch err := <-c.answer; {
	case err == nil:
		return &toolsv1.CheckAgentsResponse{}, nil
	case status.Code(err) == codes.NotFound:
		return &toolsv1.CheckAgentsResponse{Faults: []*toolsv1.AgentFault{{Agent: "mine", Message: err.Error()}}}, nil
	default:
		return nil, err
	}
}

func TestAReplicaIsNotReadyUntilItsAgentsFitTheToolsService(t *testing.T) {
	set, err := agent.NewSet(map[string]agent.Spec{"mine": {Profile: "nonesuch", Tools: []string{"bash"}}}, "mine")
	if err != nil {
		t.Fatal(err)
	}
	fake := &changing{asked: make(chan *toolsv1.CheckAgentsRequest), answer: make(chan error)}
	conn := rpctest.Dial(t, func(r grpc.ServiceRegistrar) { toolsv1.RegisterCallServiceServer(r, fake) })
	a := newAgents(set, remote.NewTools(conn), slog.New(slog.NewTextHandler(t.Output(), nil)))
	a.every = time.Millisecond
	done := make(chan error, 1)
	go func() { done <- a.run(t.Context()) }()
	asked := <-fake.asked
	fake.answer <- status.Error(codes.Unavailable, "away")
	if last := asked.Agents[len(asked.Agents)-1]; last.Agent != "mine" || last.Profile != "nonesuch" || last.Tools[0] != "bash" {
		t.Errorf("asked about %v", last)
	}
	<-fake.asked // that tools was away is known now
	if err := a.fit(); err != nil {
		t.Errorf("tools is away, and the agents are to blame: %v", err)
	}
	fake.answer <- status.Error(codes.NotFound, "no such profile")
	<-fake.asked
	if err := a.fit(); err == nil || !strings.Contains(err.Error(), "no such profile") {
		t.Errorf("an agent without its profile: %v", err)
	}
	if got := a.faultsOf("mine"); len(got) != 1 || a.faultsOf("default") != nil {
		t.Errorf("the faults of the agent are %q", got)
	}
	fake.answer <- nil
	if err := <-done; err != nil || a.fit() != nil {
		t.Errorf("all fits: %v, %v", err, a.fit())
	}
}
