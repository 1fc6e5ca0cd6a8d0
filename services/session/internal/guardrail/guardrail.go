// Package guardrail is the circuit breaker of a turn: it detects that an agent
// makes no progress. Its result depends only on the turn's messages, so that
// every replica reaches the same one.
package guardrail

import (
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const (
	// maxMost bounds the limit of a rule.
	maxMost = 10_000
	// maxRound is the longest sequence of calls whose repetition is detected.
	maxRound = 4
	// minHint is the smallest limit with a hint at half way.
	minHint = 4
)

// Names of tools that the rules treat specially.
const (
	todoTool = "TodoWrite"
	pollTool = "check_operation" // repeated use is its purpose
)

// Rule is one guardrail. A Most of 0 switches it off.
type Rule struct {
	Most    int
	Partial bool // the turn ends PARTIAL rather than FAILED
}

// Rules are the guardrails of a model.
type Rules struct{ Failures, Repeats, Silent, Todo Rule }

// Finding is a rule that was broken.
type Finding struct {
	Reason  sessionv1.ErrorReason
	Message string // for people: what happened and what to do
	Partial bool
}

// counts has the count of each rule at the end of a turn.
type counts struct {
	failures   int
	failedTool string
	repeats    int
	repeated   []string // the tools of the round
	silent     int
	todo       int
}

// Check examines the messages of one turn, oldest first, and returns the first
// broken rule, or nil. A person's message in the middle of the turn resets
// every count.
func (r Rules) Check(turn []*sessionv1.Message) *Finding {
	c := count(turn)
	switch {
	case reached(c.failures, r.Failures):
		return &Finding{sessionv1.ErrorReason_ERROR_REASON_TOOL_FAILURES, fmt.Sprintf(
			"%d tool calls in a row failed, the last one of %s. Read their results, fix the cause, then send another message.", c.failures, c.failedTool), r.Failures.Partial}
	case reached(c.repeats, r.Repeats):
		return &Finding{sessionv1.ErrorReason_ERROR_REASON_REPEATED_CALLS, fmt.Sprintf(
			"The agent made %s %d times in a row without progress. Tell it what to do differently in another message.", round(c.repeated), c.repeats), r.Repeats.Partial}
	case reached(c.silent, r.Silent):
		return &Finding{sessionv1.ErrorReason_ERROR_REASON_SILENT_STEPS, fmt.Sprintf(
			"The agent made %d steps in a row without saying anything. Its work is kept; send another message to let it continue.", c.silent), r.Silent.Partial}
	case reached(c.todo, r.Todo):
		return &Finding{sessionv1.ErrorReason_ERROR_REASON_TODO_STEPS, fmt.Sprintf(
			"The agent made %d steps in a row that only changed its list of things to do. Send another message that tells it where to begin.", c.todo), r.Todo.Partial}
	default:
		return nil
	}
}

// Hint returns a hint for the model if the last step, which begins at index
// step, has brought it half way to a rule; otherwise "".
func (r Rules) Hint(turn []*sessionv1.Message, step int) string {
	before, now := count(turn[:step]), count(turn)
	var hints []string
	add := func(was, is int, rule Rule, format string, args ...any) {
		if half := (rule.Most + 1) / 2; rule.Most >= minHint && was < half && is >= half {
			hints = append(hints, fmt.Sprintf(format, args...))
		}
	}
	add(before.failures, now.failures, r.Failures, "The last %d tool calls failed. Try another way, or tell the user what stops you.", now.failures)
	add(before.repeats, now.repeats, r.Repeats, "You made %s %d times in a row. Do something else, or tell the user what stops you.", round(now.repeated), now.repeats)
	add(before.silent, now.silent, r.Silent, "You made %d steps without text for the user. Say in a sentence what you are doing.", now.silent)
	add(before.todo, now.todo, r.Todo, "You made %d steps that only changed the list of things to do. Begin with the work.", now.todo)
	if len(hints) == 0 {
		return ""
	}
	return "Note by the session: " + strings.Join(hints, " ") + " Otherwise the turn will be ended."
}

func reached(n int, r Rule) bool { return r.Most > 0 && n >= r.Most }

func round(tools []string) string {
	switch len(tools) {
	case 0:
		return "no call"
	case 1:
		return "the same call of " + tools[0]
	}
	return "the same calls of " + strings.Join(tools[:len(tools)-1], ", ") + " and " + tools[len(tools)-1]
}

// OnlyTodo reports whether a step only changed the list of things to do.
func OnlyTodo(m *sessionv1.Message) bool {
	calls := 0
	for _, b := range m.GetBlocks() {
		if u := b.GetToolUse(); u != nil {
			if u.Tool != todoTool {
				return false
			}
			calls++
		}
	}
	return calls > 0
}

// count counts over the messages.
func count(turn []*sessionv1.Message) counts {
	var c counts
	var made []*sessionv1.ToolUse
	open := map[string]*sessionv1.ToolUse{}
	for _, m := range turn {
		switch {
		case m.Compaction != nil: // not an action of the agent
		case m.Role == sessionv1.Role_ROLE_ASSISTANT:
			c.step(m)
			clear(open)
			for _, b := range m.Blocks {
				if u := b.GetToolUse(); u != nil {
					open[u.CallId] = u
				}
			}
		case !results(m):
			c, made = counts{}, nil
		default:
			for _, b := range m.Blocks {
				u := open[b.GetToolResult().GetCallId()]
				if u == nil {
					continue
				}
				delete(open, u.CallId)
				c.result(u, b.GetToolResult().Outcome)
				if u.Tool != pollTool && u.Tool != todoTool {
					made = append(made, u)
				}
			}
		}
	}
	c.repeats, c.repeated = repetition(made)
	return c
}

func (c *counts) step(m *sessionv1.Message) {
	c.silent++
	for _, b := range m.Blocks {
		if strings.TrimSpace(b.GetContent().GetText().GetText()) != "" {
			c.silent = 0
		}
	}
	c.todo++
	if !OnlyTodo(m) {
		c.todo = 0
	}
}

// result counts failures. A person's action (refuse, stop, not answer) is
// neither a failure nor a success.
func (c *counts) result(u *sessionv1.ToolUse, o sessionv1.ToolOutcome) {
	switch o {
	case sessionv1.ToolOutcome_TOOL_OUTCOME_OK:
		c.failures, c.failedTool = 0, ""
	case sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, sessionv1.ToolOutcome_TOOL_OUTCOME_DENIED,
		sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE:
		c.failures++
		c.failedTool = u.Tool
	}
}

// results reports whether a message has tool results.
func results(m *sessionv1.Message) bool {
	for _, b := range m.Blocks {
		if b.GetToolResult() != nil {
			return true
		}
	}
	return false
}

// repetition finds the round of at most maxRound calls that was repeated most
// often, without a gap, up to the end. Two calls are the same if tool and
// arguments are equal, byte by byte.
func repetition(made []*sessionv1.ToolUse) (times int, tools []string) {
	for size := 1; size <= maxRound && size <= len(made); size++ {
		n := 1
		for i := len(made) - size; i >= size && same(made[i-size:i], made[len(made)-size:]); i -= size {
			n++
		}
		if n > times {
			times, tools = n, nil
			for _, u := range made[len(made)-size:] {
				tools = append(tools, u.Tool)
			}
		}
	}
	return times, tools
}

func same(a, b []*sessionv1.ToolUse) bool {
	for i := range a {
		if a[i].Tool != b[i].Tool || a[i].ArgumentsJson != b[i].ArgumentsJson {
			return false
		}
	}
	return true
}
