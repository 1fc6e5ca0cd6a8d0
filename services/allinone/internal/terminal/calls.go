package terminal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// How many characters of a call's arguments are shown, and of other texts on
// one line.
const (
	argumentWidth = 90
	wide          = 2000
)

// call shows the events of tool calls.
func (r *Renderer) call(e *sessionv1.Event) {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_ToolCallArguments:
		a := b.ToolCallArguments
		name := Line(a.GetTool(), 40)
		short := Arguments(a.GetArgumentsJson())
		r.calls[a.GetCallId()] = strings.TrimSpace(name + " " + Line(short, 40))
		r.lines(strings.TrimRight(r.style(cyan, "> "+name)+" "+short, " "))
	case *sessionv1.Event_ToolCallDecision:
		if d := b.ToolCallDecision; d.GetDecision() == sessionv1.Decision_DECISION_DENY {
			r.lines(r.style(yellow, "  not allowed: "+Line(d.GetRule(), 80)))
		}
	case *sessionv1.Event_ToolCallProgress:
		r.lines(r.style(dim, "  "+Line(b.ToolCallProgress.GetMessage(), 100)))
	case *sessionv1.Event_ToolCallFinished:
		r.result(b.ToolCallFinished)
	case *sessionv1.Event_ApprovalRequested:
		r.approval(b.ApprovalRequested)
	case *sessionv1.Event_QuestionRequested:
		r.question(b.QuestionRequested)
	case *sessionv1.Event_QuestionResolved:
		r.lines(r.style(dim, "  "+Line(answered(b.QuestionResolved), wide)))
	case *sessionv1.Event_ApprovalResolved:
		r.lines(r.style(dim, "  "+Line(resolved(b.ApprovalResolved), wide)))
	}
}

// result shows how a call ended.
func (r *Renderer) result(f *sessionv1.ToolCallFinished) {
	outcome := strings.ToLower(strings.TrimPrefix(f.GetOutcome().String(), "TOOL_OUTCOME_"))
	color, limit := green, r.options.Lines
	if f.GetOutcome() != sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
		color, limit = red, max(limit, 5)
	}
	what := r.calls[f.GetCallId()]
	if what == "" {
		what = Line(f.GetTool(), 40)
	}
	delete(r.calls, f.GetCallId())
	r.lines("  " + r.style(color, outcome) + r.style(dim, fmt.Sprintf(", %d ms: %s", f.GetDurationMs(), what)))
	if limit > 0 {
		r.quote(plain(f.GetContent()), limit)
	}
}

// quote shows the last lines of a text.
func (r *Renderer) quote(text string, limit int) {
	lines := strings.Split(strings.TrimRight(Clean(text), "\n"), "\n")
	if len(lines) > limit {
		r.lines(r.style(dim, fmt.Sprintf("    (%s before)", plural(int64(len(lines)-limit), "line"))))
		lines = lines[len(lines)-limit:]
	}
	for _, line := range lines {
		r.lines(r.style(dim, "    "+cut(line, 200)))
	}
}

// cut bounds a line, but keeps its spaces.
func cut(line string, width int) string {
	if all := []rune(line); len(all) > width {
		return string(all[:width-3]) + "..."
	}
	return line
}

// approval shows what a person is asked about: all of it, exactly.
func (r *Renderer) approval(a *sessionv1.ApprovalRequested) {
	if a.GetTool() == "" {
		r.lines(r.style(yellow, "? "+Line(a.GetMessage(), wide)))
		return
	}
	if a.GetKind() == sessionv1.ApprovalKind_APPROVAL_KIND_PLAN {
		r.lines(r.style(yellow, "? The agent shows its plan:"))
		for line := range strings.SplitSeq(strings.TrimRight(Exact(a.GetMessage()), "\n"), "\n") {
			r.lines("    " + line)
		}
		return
	}
	r.lines(r.style(yellow, "? "+Line(a.GetTool(), wide)+" wants your approval ("+Line(a.GetRule(), 80)+"), with these arguments:"))
	for line := range strings.SplitSeq(Exact(a.GetArgumentsJson()), "\n") {
		r.lines("    " + line)
	}
}

// question shows what an agent, or the server of one of its tools, asks a person.
func (r *Renderer) question(a *sessionv1.QuestionRequested) {
	q := a.GetQuestion()
	from := "The agent"
	if q.GetServer() != "" {
		from = "The server " + Line(q.GetServer(), 40)
	}
	r.lines(r.style(yellow, strings.TrimSpace("? "+from+" asks. "+Line(q.GetMessage(), wide))))
	for _, item := range q.GetItems() {
		r.lines("    " + Line(item.GetHeader(), 40) + ": " + Line(item.GetQuestion(), wide))
		for i, o := range item.GetOptions() {
			r.lines(fmt.Sprintf("    %d. %s: %s", i+1, Line(o.GetLabel(), 80), Line(o.GetDescription(), 200)))
		}
	}
	if q.GetUrl() != "" {
		r.lines("    Visit " + Line(q.GetUrl(), wide))
	}
	if q.GetSchemaJson() != "" {
		r.lines("    The answer is a JSON object of the schema " + Exact(q.GetSchemaJson()))
	}
}

// answered describes the answer to a question.
func answered(a *sessionv1.QuestionResolved) string {
	text := map[commonv1.QuestionAction]string{
		commonv1.QuestionAction_QUESTION_ACTION_ACCEPT:  "answered",
		commonv1.QuestionAction_QUESTION_ACTION_DECLINE: "declined",
		commonv1.QuestionAction_QUESTION_ACTION_CANCEL:  "cancelled",
	}[a.GetAction()]
	switch {
	case a.GetExpired():
		return "no answer came in time"
	case a.GetUser() != "":
		text += " by " + a.GetUser()
	}
	if a.GetContentJson() != "" {
		text += ": " + a.GetContentJson()
	}
	return text
}

// resolved describes an answer.
func resolved(a *sessionv1.ApprovalResolved) string {
	text := "refused"
	switch {
	case a.GetExpired():
		return "no answer came in time"
	case a.GetApproved():
		text = "approved"
	}
	if a.GetUser() != "" {
		text += " by " + a.GetUser()
	}
	switch a.GetScope() {
	case commonv1.ApprovalScope_APPROVAL_SCOPE_SESSION:
		text += " for this session, with " + a.GetRule()
	case commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS:
		text += " for every session, with " + a.GetRule()
	}
	if a.GetMode() != 0 {
		text += ", in the mode " + Mode(a.GetMode())
	}
	if a.GetUpdatedArgumentsJson() != "" {
		text += " with other arguments: " + Arguments(a.GetUpdatedArgumentsJson())
	}
	if a.GetComment() != "" {
		text += ": " + a.GetComment()
	}
	return text
}

// Mode returns the name of a permission mode.
func Mode(m commonv1.PermissionMode) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(m.String(), "PERMISSION_MODE_"), "_", "-"))
}

// Arguments returns a short form of a call's arguments: the values that say most, with every digit.
func Arguments(text string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &args) != nil {
		return Line(text, argumentWidth)
	}
	for _, key := range []string{"command", "file_path", "path", "pattern", "query", "url", "prompt", "plan"} {
		var v *string
		if json.Unmarshal(args[key], &v) == nil && v != nil {
			return Line(*v, argumentWidth)
		}
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(args)) {
		if v, err := jsontext.Compact(string(args[key])); err == nil {
			parts = append(parts, key+"="+v)
		}
	}
	return Line(strings.Join(parts, " "), argumentWidth)
}
