package calls

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

func TestEveryOutcomeOfTheNetworkHasAName(t *testing.T) {
	reported := &toolsv1.CallResult{Network: []*sandboxv1.NetworkUse{{
		Host: "a.example.com", Port: 443, Rule: "api", Credential: "vault", Outcome: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DONE,
		Connections: 2, SentBytes: 3, ReceivedBytes: 4, Duration: durationpb.New(5 * time.Millisecond),
	}}}
	names := map[sandboxv1.NetworkOutcome]string{}
	for n := range sandboxv1.NetworkOutcome_name {
		if n > 1 {
			reported.Network = append(reported.Network, &sandboxv1.NetworkUse{Outcome: sandboxv1.NetworkOutcome(n), Rule: "r", Message: "why"})
		}
	}
	events := networkEvents("sessions/s/turns/t", 2, "c", reported)
	want := &sessionv1.ToolCallNetwork{
		CallId: "c", Host: "a.example.com", Port: 443, Allowed: true, Outcome: "done", Rule: "api", Credential: "vault",
		Connections: 2, SentBytes: 3, ReceivedBytes: 4, DurationMs: 5,
	}
	if d := cmp.Diff(want, events[0].GetToolCallNetwork(), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if events[0].Turn != "sessions/s/turns/t" || events[0].Step != 2 {
		t.Errorf("it belongs to %q", events[0].Turn)
	}
	for i, e := range events {
		n := e.GetToolCallNetwork()
		names[reported.Network[i].Outcome] = n.Outcome
		if refused := n.Outcome == "denied" || n.Outcome == "refused_address" || n.Outcome == "bad_request"; n.Allowed == refused {
			t.Errorf("%s: allowed is %v", n.Outcome, n.Allowed)
		}
	}
	if len(names) != 7 || len(events) != 7 {
		t.Errorf("the names are %v", names)
	}
	for n := range sandboxv1.NetworkOutcome_name {
		reported.Network = []*sandboxv1.NetworkUse{{Outcome: sandboxv1.NetworkOutcome(n)}}
		if networkEvents("", 0, "", reported)[0].GetToolCallNetwork().Allowed {
			t.Errorf("outcome %d is allowed, and by no rule", n)
		}
	}
	if got := networkEvents("", 0, "", (*toolsv1.CallResult)(nil)); got != nil {
		t.Errorf("without a report of tools there are %v", got)
	}
}
