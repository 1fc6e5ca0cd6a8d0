package check_test

import (
	"slices"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

const (
	running   = toolsv1.OperationState_OPERATION_STATE_RUNNING
	succeeded = toolsv1.OperationState_OPERATION_STATE_SUCCEEDED
	lost      = toolsv1.OperationState_OPERATION_STATE_UNKNOWN
)

// operate writes that a call handed back an operation, which ends well.
func (s *story) operate(call, last string) {
	s.add(&event{Body: &sessionv1.Event_OperationStarted{OperationStarted: &sessionv1.OperationStarted{CallId: call, Operation: "operations/" + call}}})
	end := record.Look{Time: s.at(), State: succeeded, Output: last + "\n"}
	if s.session.Operations == nil {
		s.session.Operations = map[string]*record.Operation{}
	}
	s.session.Operations[call] = &record.Operation{Looks: []record.Look{{Time: s.at(), State: running, Exit: -1}, end}, End: end, Again: end}
	s.session.Effects = append(s.session.Effects, last)
}

// operating finds a plan whose first call hands back an operation.
func operating(t *testing.T, sc *script.Script) int {
	for i := range sc.Plans {
		if want, _ := sc.Expect(script.Text(i, "")); len(want.Steps[0].Calls) > 0 && want.Steps[0].Calls[0].Last != "" {
			return i
		}
	}
	t.Fatal("no plan begins with an operation")
	return 0
}

// looking finds a plan whose second step looks at the operation that the first has handed back.
func looking(t *testing.T, sc *script.Script) int {
	for i := range sc.Plans {
		want, _ := sc.Expect(script.Text(i, ""))
		if want.Steps[0].HandsBack() >= 0 && slices.ContainsFunc(want.Steps[1].Calls, func(c script.Call) bool { return c.Looks }) {
			return i
		}
	}
	t.Fatal("no plan looks at an operation")
	return 0
}

func isLook(e *event) bool { return e.GetOperationProgress() != nil }

func TestTheModelLooksAtOperations(t *testing.T) {
	run, sc := recorded(t, looking)
	_, look := find(t, run.Sessions[0].Log, isLook)
	look.Body = &sessionv1.Event_OperationFinished{OperationFinished: &sessionv1.OperationFinished{Operation: look.GetOperationProgress().GetOperation(), State: "SUCCEEDED", CallId: "c"}}
	run.Sessions[0].Again, run.Sessions[0].Followers = run.Sessions[0].Log, nil
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if rep.Stats.Looks < 2 {
		t.Errorf("the figures are %+v", rep.Stats)
	}
}

func TestPlantedFaultsAboutLooksAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, s *record.Session)
	}{
		{"a look showed nothing", check.Operations, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isLook)
			e.Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{}}
		}},
		{"a look showed another operation", check.Operations, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isLook)
			e.GetOperationProgress().Operation += "0"
		}},
		{"a look showed an end that was none", check.Operations, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isLook)
			e.Body = &sessionv1.Event_OperationFinished{OperationFinished: &sessionv1.OperationFinished{Operation: e.GetOperationProgress().GetOperation(), State: "FAILED"}}
		}},
		{"a look failed although there was an operation", check.Completes, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, func(e *event) bool { return e.GetToolCallFinished().GetTool() == "check_operation" })
			e.GetToolCallFinished().Outcome = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := recorded(t, looking)
			c.plant(t, run.Sessions[0])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}

// firstOperation is that of the first call, and the line with which its command ends.
func firstOperation(t *testing.T, s *record.Session) (*record.Operation, string) {
	t.Helper()
	_, e := find(t, s.Log, func(e *event) bool { return e.GetOperationStarted() != nil })
	o := s.Operations[e.GetOperationStarted().GetCallId()]
	return o, o.End.Output[:len(o.End.Output)-1]
}

func TestOperationsEnd(t *testing.T) {
	run, sc := recorded(t, operating)
	rep := check.Run(run, sc, limits)
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if rep.Stats.Operations < 2 {
		t.Errorf("the figures are %+v", rep.Stats)
	}
}

func TestASandboxThatDiedExcusesAnUnknownOperation(t *testing.T) {
	run, sc := recorded(t, operating)
	s := run.Sessions[0]
	o, last := firstOperation(t, s)
	o.End = record.Look{Time: o.End.Time, State: lost, Exit: -1}
	o.Again, o.Looks[1] = o.End, o.End
	s.Effects = without(without(s.Effects, last), strings.TrimSuffix(last, "/end"))
	if !rules(check.Run(run, sc, limits))[check.Unknown] {
		t.Error("it is unknown without a reason, and that was not found")
	}
	run.Faults = append(run.Faults, record.Fault{Kind: record.Kill, Service: record.SandboxService, Begin: o.End.Time, End: o.End.Time})
	for _, v := range check.Run(run, sc, limits).Violations {
		t.Error(v)
	}
}

func TestPlantedFaultsAboutOperationsAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  check.Rule
		plant func(t *testing.T, s *record.Session)
	}{
		{"an operation did not end", check.Operations, func(t *testing.T, s *record.Session) {
			o, _ := firstOperation(t, s)
			o.End.State, o.Again.State, o.Looks = running, running, nil
		}},
		{"an operation failed", check.Operations, func(t *testing.T, s *record.Session) {
			o, _ := firstOperation(t, s)
			o.End.State = toolsv1.OperationState_OPERATION_STATE_FAILED
		}},
		{"an operation ended twice, each time in another way", check.Operations, func(t *testing.T, s *record.Session) {
			o, _ := firstOperation(t, s)
			o.Looks[1].State = toolsv1.OperationState_OPERATION_STATE_CANCELLED
		}},
		{"an operation that had ended runs again", check.Operations, func(t *testing.T, s *record.Session) {
			o, _ := firstOperation(t, s)
			o.Looks = append(o.Looks, o.Looks[0])
		}},
		{"the other replica tells another end", check.Operations, func(t *testing.T, s *record.Session) {
			o, _ := firstOperation(t, s)
			o.Again.Output = "something else"
		}},
		{"the output of an operation is there twice", check.Operations, func(t *testing.T, s *record.Session) {
			o, _ := firstOperation(t, s)
			o.End.Output += o.End.Output
		}},
		{"the output of an operation is missing", check.Operations, func(t *testing.T, s *record.Session) {
			o, _ := firstOperation(t, s)
			o.End.Output = ""
		}},
		{"a call handed back no operation", check.Operations, func(t *testing.T, s *record.Session) {
			_, e := find(t, s.Log, isResult)
			e.GetToolCallFinished().Operation = ""
		}},
		{"an operation was not reported", check.Operations, func(_ *testing.T, s *record.Session) { s.Operations = nil }},
		{"an operation ran twice", check.EffectOnce, func(t *testing.T, s *record.Session) {
			_, last := firstOperation(t, s)
			s.Effects = append(s.Effects, last)
		}},
		{"the command of an operation that succeeded never began", check.EffectOnce, func(t *testing.T, s *record.Session) {
			_, last := firstOperation(t, s)
			s.Effects = without(s.Effects, strings.TrimSuffix(last, "/end"))
		}},
		{"an operation that succeeded had no effect", check.EffectOnce, func(t *testing.T, s *record.Session) {
			_, last := firstOperation(t, s)
			s.Effects = without(s.Effects, last)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, sc := recorded(t, operating)
			c.plant(t, run.Sessions[0])
			rep := check.Run(run, sc, limits)
			if !rules(rep)[c.rule] {
				t.Errorf("not found; found: %v", rep.Violations)
			}
		})
	}
}
