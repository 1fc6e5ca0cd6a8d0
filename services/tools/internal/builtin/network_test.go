package builtin

import (
	"strconv"
	"strings"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

func TestWhatTheNetworkRefusedIsTold(t *testing.T) {
	e := &sandboxv1.ExecExited{Network: []*sandboxv1.NetworkUse{
		{Host: "a.example.com", Outcome: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DONE},
		{Host: "evil.org", Outcome: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DENIED, Message: "the host evil.org is not allowed"},
		{Host: "evil.org", Outcome: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DENIED, Message: "the host evil.org is not allowed"},
	}}
	if got, want := refusals(e), "\n[The network: the host evil.org is not allowed]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 20 {
		e.Network = append(e.Network, &sandboxv1.NetworkUse{Outcome: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_FAILED, Message: strconv.Itoa(i)})
	}
	if got := refusals(e); strings.Count(got, "\n") != maxRefusals+1 || !strings.HasSuffix(got, "more than this.]") {
		t.Errorf("many are told as %q", got)
	}
}

func TestLimitsThatWereMetAreTold(t *testing.T) {
	const ended = "the command was ended because it wrote a file that is too large"
	e := &sandboxv1.ExecExited{Message: ended, LimitsHit: []*sandboxv1.LimitHit{
		{Limit: "file-size", Message: ended}, {Limit: "output", Message: "5 bytes were thrown away"},
		{Limit: "open-files", Message: "there may be 16"},
	}}
	if got, want := limits(e), "\n[A limit was met (open-files): there may be 16.]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
