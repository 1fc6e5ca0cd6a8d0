package check_test

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// notedFirst finds a plan whose first call is of the MCP server on the network.
func notedFirst(t *testing.T, sc *script.Script) int {
	for i := range sc.Plans {
		if want, _ := sc.Expect(script.Text(i, "")); len(want.Steps[0].Calls) > 0 && want.Steps[0].Calls[0].Noted != "" {
			return i
		}
	}
	t.Fatal("no plan begins with a call of the MCP server")
	return 0
}

// ends gives the first call another outcome, in all recordings of the log.
func ends(t *testing.T, s *record.Session, outcome sessionv1.ToolOutcome) {
	t.Helper()
	for _, log := range [][]*event{s.Log, s.Again, append(s.Followers[0].Streams[0].Events, s.Followers[0].Streams[1].Events...)} {
		_, e := find(t, log, isResult)
		e.GetToolCallFinished().Outcome = outcome
	}
}

func first(run *record.Run, sc *script.Script) string {
	want, _ := sc.Expect(run.Sessions[0].Accepted[0].Text)
	return want.Steps[0].Calls[0].Noted
}

func TestCallsOfServersAreCounted(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, run *record.Run, line string){
		"all went well": func(*testing.T, *record.Run, string) {},
		"one was not made": func(t *testing.T, run *record.Run, line string) {
			ends(t, run.Sessions[0], sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR)
			delete(run.Notes, line)
		},
		"the answer to one was lost with its caller": func(t *testing.T, run *record.Run, _ string) {
			ends(t, run.Sessions[0], sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN)
			run.Faults = []record.Fault{{Kind: record.Kill, Service: record.ToolsService, Target: "tools-1", Begin: run.Begin, End: run.End}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run, sc := recorded(t, notedFirst)
			change(t, run, first(run, sc))
			for _, v := range check.Run(run, sc, limits).Violations {
				t.Error(v)
			}
		})
	}
}

func TestPlantedFaultsAboutServersAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, run *record.Run, line string)
	}{
		{"a server got a call twice", check.Noted, func(_ *testing.T, run *record.Run, line string) { run.Notes[line]++ }},
		{"a server never got a call that went well", check.Noted, func(_ *testing.T, run *record.Run, line string) { delete(run.Notes, line) }},
		{"a server got what no call says", check.Noted, func(_ *testing.T, run *record.Run, _ string) { run.Notes["something"]++ }},
		{"a server got a call that was not made", check.Noted, func(t *testing.T, run *record.Run, _ string) {
			ends(t, run.Sessions[0], sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR)
		}},
		{"the end of a call is not known, and nothing happened", check.Unknown, func(t *testing.T, run *record.Run, _ string) {
			ends(t, run.Sessions[0], sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN)
		}},
		{"the end of a call is not known, and the gateway died", check.Unknown, func(t *testing.T, run *record.Run, _ string) {
			ends(t, run.Sessions[0], sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN)
			run.Faults = []record.Fault{{Kind: record.Kill, Service: record.Gateway, Target: "gateway", Begin: run.Begin, End: run.End}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := recorded(t, notedFirst)
			c.plant(t, run, first(run, sc))
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}
