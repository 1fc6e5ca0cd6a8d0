package builtin

import (
	"fmt"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// maxRefusals bounds how many refusals are listed.
const maxRefusals = 5

// refusals lists for the model the requests that the network refused: programs
// often report only that a tunnel failed.
func refusals(e *sandboxv1.ExecExited) string {
	var b strings.Builder
	told := map[string]bool{}
	for _, u := range e.GetNetwork() {
		if u.GetOutcome() == sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DONE || u.GetMessage() == "" || told[u.GetMessage()] {
			continue
		}
		if told[u.GetMessage()] = true; len(told) > maxRefusals {
			b.WriteString("\n[The network refused or failed more than this.]")
			break
		}
		fmt.Fprintf(&b, "\n[The network: %s]", u.GetMessage())
	}
	return b.String()
}

// limits lists for the model the limits that a command reached without being
// ended. The limit that ended it is reported with its end.
func limits(e *sandboxv1.ExecExited) string {
	var b strings.Builder
	for _, h := range e.GetLimitsHit() {
		if h.GetMessage() == e.GetMessage() || h.GetLimit() == "output" {
			continue // reported already
		}
		fmt.Fprintf(&b, "\n[A limit was met (%s): %s.]", h.GetLimit(), h.GetMessage())
	}
	return b.String()
}
