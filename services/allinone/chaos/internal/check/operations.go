package check

import (
	"strings"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// operations checks that each operation ended once, with its command's output.
func (c *checker) operations(s *record.Session, state *fold.State) {
	asked := map[string]bool{}
	for _, t := range state.Turns {
		course := c.course(s, t)
		c.looks(s, t, course)
		for i, step := range t.Steps {
			for j, call := range step.Calls {
				if i >= len(course.Steps) || j >= len(course.Steps[i].Calls) {
					continue // found elsewhere
				}
				want := course.Steps[i].Calls[j].Last
				if given := call.Operation != ""; given != (want != "") && call.Outcome == outcomeOK {
					c.fault(Operations, s, "call %s handed back %q, and its command was to end with %q", call.ID, call.Operation, want)
				}
				if call.Operation != "" {
					asked[call.ID] = true
					c.operation(s, call, want)
				}
			}
		}
	}
	for id, o := range s.Operations {
		c.stable(s, id, o)
		if !asked[id] && !o.End.Ended() { // its turn was undone, and it goes on
			c.fault(Operations, s, "the operation of call %s did not end", id)
		}
	}
}

// looks checks the results of a turn's calls that look at operations. Each call looks once at the operation
// that the step before has handed back; if it had ended, the result says how.
func (c *checker) looks(s *record.Session, t *fold.Turn, course script.Expected) {
	for i, step := range t.Steps {
		if i >= len(course.Steps) || i == 0 {
			continue
		}
		name := handedBack(t, i)
		looked := 0
		for j, call := range step.Calls {
			if j < len(course.Steps[i].Calls) && course.Steps[i].Calls[j].Looks && call.Outcome == outcomeOK {
				looked++
			}
		}
		if name == "" || looked == 0 {
			continue // there was nothing to look at, or the look was broken off
		}
		c.report.Stats.Looks++
		if len(step.Looks) != looked || step.Looks[0].Operation != name {
			c.fault(Operations, s, "step %d of %q looked at %s, and the log has %v", i+1, t.Said, name, step.Looks)
			continue
		}
		end := s.Operations[strings.TrimPrefix(name, "operations/")]
		if state := step.Looks[0].State; state != "" && (end == nil || "OPERATION_STATE_"+state != end.End.State.String()) {
			c.fault(Operations, s, "step %d of %q saw that %s had ended %s, and it ended otherwise: %v", i+1, t.Said, name, state, end)
		}
	}
}

// handedBack returns the operation that a step of a turn, counted from 1, has handed back, or "".
func handedBack(t *fold.Turn, step int) string {
	if step < 1 || step > len(t.Steps) {
		return ""
	}
	for _, call := range t.Steps[step-1].Calls {
		if call.Operation != "" {
			return call.Operation
		}
	}
	return ""
}

// operation checks how an operation ended: successfully, unless the sandbox
// died meanwhile.
func (c *checker) operation(s *record.Session, call *fold.Call, want string) {
	c.report.Stats.Operations++
	o := s.Operations[call.ID]
	if o == nil {
		c.fault(Operations, s, "the operation of call %s was not reported", call.ID)
		return
	}
	switch o.End.State {
	case toolsv1.OperationState_OPERATION_STATE_SUCCEEDED:
		if o.End.Exit != 0 || strings.Count(o.End.Output, want+"\n") != 1 {
			c.fault(Operations, s, "the operation of call %s ended with the exit code %d and %q, want %q once", call.ID, o.End.Exit, o.End.Output, want)
		}
	case toolsv1.OperationState_OPERATION_STATE_UNKNOWN:
		c.report.Stats.UnknownOperations++
		began, ended := c.run.Begin, o.End.Time
		for _, e := range s.Log {
			if e.GetToolCallArguments().GetCallId() == call.ID { // its command may have begun long before the log could tell
				began = e.GetTime().AsTime()
			}
		}
		for _, l := range o.Looks {
			if l.Ended() {
				ended = l.Time
				break
			}
		}
		if !c.faults.died(began, ended) {
			c.fault(Unknown, s, "the end of the operation of call %s is not known, and no sandbox died while it ran", call.ID)
		}
	default:
		c.fault(Operations, s, "the operation of call %s ended %v with the exit code %d: %q", call.ID, o.End.State, o.End.Exit, o.End.Output)
	}
}

// stable checks that all replicas report the same end of an ended operation.
func (c *checker) stable(s *record.Session, id string, o *record.Operation) {
	var end *record.Look
	for _, l := range append(append([]record.Look{}, o.Looks...), o.End, o.Again) {
		if end != nil && (l.State != end.State || l.Exit != end.Exit || l.Output != end.Output) {
			c.fault(Operations, s, "the operation of call %s had ended %v (%d, %q), and then %s told %v (%d, %q)",
				id, end.State, end.Exit, end.Output, l.Via, l.State, l.Exit, l.Output)
		}
		if l.Ended() {
			end = &l
		}
	}
}

// restored reports whether files were restored after the command of a line was requested, to a time before
// changes that an operation may still make.
func restored(s *record.Session, line string) bool {
	asked := false
	for _, e := range s.Log {
		asked = asked || strings.Contains(e.GetToolCallArguments().GetArgumentsJson(), line)
		if asked && e.GetSessionRewound() != nil {
			return true
		}
	}
	return false
}

// succeeded reports whether the operation that ends with a line succeeded.
func succeeded(s *record.Session, line string) bool {
	for _, o := range s.Operations {
		if o.End.State == toolsv1.OperationState_OPERATION_STATE_SUCCEEDED && strings.Contains(o.End.Output, line+"\n") {
			return true
		}
	}
	return false
}

// sandboxDies reports whether a fault ends the running commands.
func sandboxDies(x record.Fault) bool {
	return x.Service == record.SandboxService && (x.Kind == record.Kill || x.Kind == record.Terminate)
}
