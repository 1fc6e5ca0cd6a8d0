package check

import (
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// tally compares the lines in a session's files with the calls of the session and its subagents.
type tally struct {
	*checker
	root   *record.Session
	left   map[string]int // lines for which no call was found yet
	people allowance
	undone map[string]bool
}

// effects compares the effects of commands with the results of their calls.
func (c *checker) effects(s *record.Session, all []kin) {
	c.report.Stats.Effects += len(s.Effects)
	t := tally{c, s, map[string]int{}, allowances(all), map[string]bool{}}
	for _, line := range s.Effects {
		t.left[line]++
	}
	for _, e := range tellEffects(s) {
		t.undone[e.line] = !e.undone.IsZero()
	}
	for line := range inheritedEffects(c.run, s) {
		delete(t.left, line) // found elsewhere
	}
	for _, k := range all {
		t.count(k)
	}
	for line, n := range t.left {
		c.fault(EffectOnce, s, "the effect %q of no call is there %d times", line, n)
	}
}

// count looks for the effects of a session's calls.
func (t tally) count(k kin) {
	for _, turn := range k.past.Turns {
		if turn.Into != "" {
			continue // its calls are those of the turn that it joined
		}
		for i, step := range t.course(k.Session, turn).Steps {
			for j, call := range step.Calls {
				outcome := sessionv1.ToolOutcome_TOOL_OUTCOME_UNSPECIFIED
				if i < len(turn.Steps) && j < len(turn.Steps[i].Calls) {
					outcome = turn.Steps[i].Calls[j].Outcome
				}
				if call.Noted != "" {
					t.note(k.Session, call.Noted, outcome)
				}
				if call.Effect != "" {
					t.effect(call, outcome)
				}
			}
		}
	}
}

// effect checks the effect of a call.
func (t tally) effect(call script.Call, outcome sessionv1.ToolOutcome) {
	s := t.root
	t.last(call.Last)
	call.Effect = t.ran(call.Effect)
	n := t.left[call.Effect]
	delete(t.left, call.Effect)
	if call.Asked && n > 0 && !strings.Contains(t.people.allowed, "'"+call.Effect+"'") {
		t.fault(Asked, s, "the effect %s is there %d times, but was not allowed", call.Effect, n)
	}
	if t.undone[call.Effect] {
		t.back(call, n)
		return
	}
	done := outcome == outcomeOK && (call.Last == "" || succeeded(s, call.Last) && !restored(s, call.Last)) // an operation may be lost after its call went well
	if n > 1 || n == 0 && done {
		t.fault(EffectOnce, s, "the effect %s of a call that ended %v is there %d times", call.Effect, outcome, n)
	}
}

// ran returns the effect that a call was to have: that of the person's arguments if there are some. Then that of the
// model's must not be there.
func (t tally) ran(effect string) string {
	edited, ok := t.people.edited[effect]
	if !ok {
		return effect
	}
	if n := t.left[effect]; n > 0 {
		t.fault(Asked, t.root, "the effect %s is there %d times, and a person had put %s in its place", effect, n, edited)
	}
	delete(t.left, effect)
	return edited
}

// back checks the effect of an undone call. Operations go on, and may write later.
func (t tally) back(call script.Call, n int) {
	t.report.Stats.FilesBack++
	if n > 1 || n > 0 && call.Last == "" {
		t.fault(Files, t.root, "the effect %s was undone and is there %d times", call.Effect, n)
	}
}

// last checks the line that a command appends when its operation ends.
func (t tally) last(line string) {
	if line == "" {
		return
	}
	n := t.left[line]
	delete(t.left, line)
	if n > 1 || n == 0 && succeeded(t.root, line) && !restored(t.root, line) {
		t.fault(EffectOnce, t.root, "the effect %s of an operation is there %d times", line, n)
	}
}
