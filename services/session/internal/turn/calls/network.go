package calls

import (
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// networkEvents returns what the command of a call did with the network. The sandbox
// bounds their number, which a command may use up.
func networkEvents(turn string, step int32, call string, reported interface {
	GetNetwork() []*sandboxv1.NetworkUse
}) []*sessionv1.Event {
	var events []*sessionv1.Event
	for _, n := range reported.GetNetwork() {
		events = append(events, &sessionv1.Event{Turn: turn, Step: step, Body: &sessionv1.Event_ToolCallNetwork{ToolCallNetwork: &sessionv1.ToolCallNetwork{
			CallId: call, Host: n.Host, Port: n.Port, Allowed: allowed(n), Outcome: networkOutcome(n.Outcome),
			Rule: n.Rule, Credential: n.Credential, Message: n.Message, Connections: n.Connections,
			SentBytes: n.SentBytes, ReceivedBytes: n.ReceivedBytes, DurationMs: n.GetDuration().AsDuration().Milliseconds(), StartTime: n.StartTime,
		}}})
	}
	return events
}

// allowed reports whether requests went out, or would have if the other side had
// answered. Without a rule no request goes out: a limit or the end of the command came
// first.
func allowed(n *sandboxv1.NetworkUse) bool {
	switch n.Outcome {
	case sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DONE, sandboxv1.NetworkOutcome_NETWORK_OUTCOME_FAILED,
		sandboxv1.NetworkOutcome_NETWORK_OUTCOME_LIMITED, sandboxv1.NetworkOutcome_NETWORK_OUTCOME_ABORTED:
		return n.Rule != ""
	default:
		return false
	}
}

// networkOutcome returns an outcome's name in the log, such as `refused_address`.
func networkOutcome(o sandboxv1.NetworkOutcome) string {
	return strings.ToLower(strings.TrimPrefix(o.String(), "NETWORK_OUTCOME_"))
}
