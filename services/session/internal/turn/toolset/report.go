package toolset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// turnsBack bounds the earlier turns that are asked for what was reported last.
const turnsBack = 3

// report appends an event for each server whose state or list of tools is another one than the log
// says, and a warning for each that cannot be used any more.
func (s *Toolset) report(sc state.Scope, servers []*commonv1.McpServerStatus) error {
	run := &sc.Active.Run
	if len(servers) == 0 && len(run.MCP) == 0 {
		return nil
	}
	known, err := reported(sc)
	if err != nil {
		return err
	}
	var write store.Write
	now := map[string]string{}
	for _, x := range servers {
		mark := markOf(x)
		if was, ok := known[x.Name]; ok && (was == mark || x.State == connecting && !strings.HasPrefix(was, markState(connected))) {
			now[x.Name] = was // a server that is away is tried again: that is no news
			continue
		}
		now[x.Name] = mark
		write.Events = append(write.Events, changedEvents(sc, x)...)
	}
	if run.MCP = now; len(write.Events) == 0 {
		return nil
	}
	write.Turns = []*store.TurnRow{sc.Active.Row()}
	return sc.Append(write)
}

func changedEvents(sc state.Scope, x *commonv1.McpServerStatus) []*sessionv1.Event {
	all := []*sessionv1.Event{sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_McpServerChanged{McpServerChanged: &sessionv1.McpServerChanged{
		Server: x.Name, State: x.State, Message: x.Message, Tools: x.Tools,
	}}})}
	if x.State != connected {
		all = append(all, sc.StepEvent(state.Warning("MCP_SERVER_UNAVAILABLE", fmt.Sprintf("The MCP server %s cannot be used: %s", x.Name, sentence(x)))))
	}
	return all
}

// reported returns what the log says of the session's servers: the marks of the active turn, or
// those of the turn before it.
func reported(sc state.Scope) (map[string]string, error) {
	if sc.Active.Run.MCP != nil {
		return sc.Active.Run.MCP, nil
	}
	seen := map[string]bool{sc.Active.Proto.Name: true, "": true}
	for i := len(sc.Path) - 1; i >= 0 && len(seen) < 2+turnsBack; i-- {
		name := sc.Path[i].Turn
		if seen[name] {
			continue
		}
		seen[name] = true
		t, err := sc.LoadTurn(sc, state.LastSegment(name))
		if err != nil {
			return nil, err
		}
		if t.Run.MCP != nil {
			return t.Run.MCP, nil
		}
	}
	return nil, nil
}

func markState(s commonv1.McpServerState) string { return fmt.Sprintf("%d:", int32(s)) }

// markOf identifies the state and the tools of a server.
func markOf(x *commonv1.McpServerStatus) string {
	sum := sha256.Sum256([]byte(strings.Join(x.Tools, "\n")))
	return markState(x.State) + hex.EncodeToString(sum[:8])
}
