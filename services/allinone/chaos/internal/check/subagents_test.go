package check_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// delegating finds a plan that begins with work for a subagent.
func delegating(t *testing.T, sc *script.Script) int {
	for i := range sc.Plans {
		if want, _ := sc.Expect(script.Text(i, "")); len(want.Steps[0].Calls) > 0 && want.Steps[0].Calls[0].Prompt != "" {
			return i
		}
	}
	t.Fatal("no plan begins with work for a subagent")
	return 0
}

func TestSubagentsWorkOnTwoLevels(t *testing.T) {
	run, sc := recorded(t, delegating)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if st := rep.Stats; st.Deepest != 2 || st.Subagents < 4 || st.Helped != st.Subagents || st.Complete != 2 {
		t.Errorf("the figures are %+v", st)
	}
}

// leaf returns a line that a subagent's subagent appends.
func leaf(t *testing.T, s *record.Session) string {
	t.Helper()
	child := s.Children[0].Children[0]
	_, e := find(t, child.Log, func(e *event) bool { return e.GetToolCallArguments() != nil })
	return script.Lines(e.GetToolCallArguments().GetArgumentsJson())[0]
}

func TestPlantedFaultsAboutSubagentsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, s, child *record.Session)
	}{
		{"a subagent has not ended", check.Subagents, func(_ *testing.T, _, child *record.Session) {
			child.Log = child.Log[:len(child.Log)-1]
		}},
		{"a subagent ended after the turn above it", check.Subagents, func(_ *testing.T, s, child *record.Session) {
			child.Log[len(child.Log)-1].Time = timestamppb.New(s.Log[len(s.Log)-1].Time.AsTime().Add(time.Second))
		}},
		{"a subagent of a subagent ended after the turn above it", check.Subagents, func(_ *testing.T, _, child *record.Session) {
			last := child.Children[0].Log[len(child.Children[0].Log)-1]
			last.Time = timestamppb.New(child.Log[len(child.Log)-1].Time.AsTime().Add(time.Millisecond))
		}},
		{"a call has two subagents", check.Subagents, func(_ *testing.T, s, child *record.Session) {
			twin := *child
			twin.Name += "-twin"
			s.Children = append(s.Children, &twin)
		}},
		{"a subagent of no call works", check.Subagents, func(_ *testing.T, _, child *record.Session) { child.Call.CallId = "t9.1.0" }},
		{"a subagent has a second turn", check.Subagents, func(_ *testing.T, _, child *record.Session) {
			child.Turns = append(child.Turns, &sessionv1.Turn{Name: child.Name + "/turns/other"})
		}},
		{"a call has no subagent, and went well", check.Completes, func(_ *testing.T, s, _ *record.Session) { s.Children = nil }},
		{"the agent did not get what its subagent said", check.Completes, func(_ *testing.T, s, _ *record.Session) {
			for _, e := range s.Log {
				if f := e.GetToolCallFinished(); f.GetTool() == script.Task {
					f.Content = nil
				}
			}
		}},
		{"a subagent's command ran twice", check.EffectOnce, func(t *testing.T, s, _ *record.Session) { s.Effects = append(s.Effects, leaf(t, s)) }},
		{"a subagent's command never ran", check.EffectOnce, func(t *testing.T, s, _ *record.Session) { s.Effects = without(s.Effects, leaf(t, s)) }},
		{"a subagent lacks an event", check.Tiling, func(_ *testing.T, _, child *record.Session) {
			child.Log = append(child.Log[:3:3], child.Log[4:]...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := recorded(t, delegating)
			c.plant(t, run.Sessions[0], run.Sessions[0].Children[0])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}
