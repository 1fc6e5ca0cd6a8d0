package compact

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
)

// hookTools runs the hook's command.
type hookTools struct {
	calls.Tools
	result    *toolsv1.CallResult // nil: the stream breaks
	cancelled []string
}

func (h *hookTools) CallTool(context.Context, *toolsv1.CallToolRequest) (func() (*toolsv1.CallToolResponse, error), error) {
	return func() (*toolsv1.CallToolResponse, error) {
		if h.result == nil {
			return nil, io.EOF
		}
		return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Result{Result: h.result}}, nil
	}, nil
}

func (h *hookTools) CancelCall(_ context.Context, call *commonv1.CallRef) (*toolsv1.CallResult, error) {
	h.cancelled = append(h.cancelled, call.CallId)
	return nil, nil
}

type noSandbox struct{ workspace.Sandbox }

func (noSandbox) EnsureWorkspace(context.Context, *sandboxv1.EnsureWorkspaceRequest) (*sandboxv1.EnsureWorkspaceResponse, error) {
	return &sandboxv1.EnsureWorkspaceResponse{}, nil
}

type fixture struct {
	*turntest.Fixture
	*Compactor
	model *turntest.Answers
	tools *hookTools
}

// start returns a session with a long conversation, in a context of 10,000 tokens.
func start(t *testing.T, s agent.Spec, budgets budget.Config, answers ...any) *fixture {
	t.Helper()
	f := &fixture{Fixture: turntest.New(t, s), model: &turntest.Answers{Answers: answers}, tools: &hookTools{}}
	f.Resolve = func(string) (state.Resolved, error) {
		r := turntest.Model(f.model)
		r.ContextTokens = 10_000
		return r, nil
	}
	for range 8 {
		f.Say(sessionv1.Role_ROLE_ASSISTANT, state.TextBlock(strings.Repeat("word ", 300)))
		f.Say(sessionv1.Role_ROLE_USER, state.TextBlock(strings.Repeat("more ", 300)))
	}
	set := toolset.New(turntest.Lists())
	c := calls.New(calls.Config{Client: f.tools, Telemetry: turntest.Telemetry(t)}, set, nil)
	w := workspace.New(workspace.Config{Sandbox: noSandbox{}}, set, c.End)
	f.Compactor = New(Config{At: 50, SummaryTokens: 500}, turntest.Telemetry(t),
		spend.New(spend.Config{Budgets: budgets, Queues: &spend.Queues{}, Telemetry: turntest.Telemetry(t)}), w, &Hook{Calls: c, Workspace: w})
	return f
}

// compacted returns the event of the last compaction, or nil.
func (f *fixture) compacted() *sessionv1.SessionCompacted {
	for _, e := range slices.Backward(f.Events()) {
		if c := e.GetSessionCompacted(); c != nil {
			return c
		}
	}
	return nil
}

func (f *fixture) ifFull(t *testing.T) state.Outcome {
	t.Helper()
	r, err := f.Resolve("")
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.IfFull(f.Scope, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAFullViewIsShortened(t *testing.T) {
	again := &model.Error{Kind: model.Unavailable, RetryAfter: 1}
	for name, c := range map[string]struct {
		answers []any
		method  string
		text    string // what the model sees first
	}{
		"by a summary":              {[]any{"they greeted"}, methodSummary, "they greeted"},
		"by a summary, tried again": {[]any{again, "they greeted"}, methodSummary, "they greeted"},
		"without a summary":         {[]any{errors.New("broken")}, methodCut, "parts of this conversation were left out"},
		"with an empty summary":     {[]any{" "}, methodCut, "parts of this conversation were left out"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, agent.Spec{}, budget.Config{}, c.answers...)
			before := len(f.Path)
			if out := f.ifFull(t); !out.GoesOn() {
				t.Fatal(out)
			}
			e := f.compacted()
			if e.GetMethod() != c.method || e.GetTrigger() != triggerAutomatic || e.GetTokensAfter() >= e.GetTokensBefore() || len(f.Path) != before+1 {
				t.Errorf("the event is %v", e)
			}
			if got := f.View(f.Path)[0].Blocks[0].GetContent().GetText().GetText(); !strings.Contains(got, c.text) {
				t.Errorf("the model sees %q", got)
			}
			if out := f.ifFull(t); !out.GoesOn() || len(f.Path) != before+1 {
				t.Error("it is shortened again")
			}
		})
	}
}

func TestAViewWithRoomStays(t *testing.T) {
	f := start(t, agent.Spec{}, budget.Config{})
	f.Count(f.Active, f.Path[len(f.Path)-1], &sessionv1.Usage{InputTokens: 100}) // as the provider counts
	if out := f.ifFull(t); !out.GoesOn() || f.compacted() != nil {
		t.Error("it was shortened")
	}
	f.At = 0
	f.Forget()
	f.Active.Run.Counted = state.Counted{}
	if out := f.ifFull(t); !out.GoesOn() || f.compacted() != nil {
		t.Error("it was shortened, though only the provider's refusal counts")
	}
}

func TestABudgetThatDeniesASummary(t *testing.T) {
	tokens := budget.Config{Scopes: budget.Scopes{Session: budget.Limits{MaxTokens: 1}}}
	denied := &store.Denial{Balance: store.Balance{Bound: store.Bound{Scope: store.BudgetSession}}, Kind: store.LimitTokens}
	t.Run("ends the turn", func(t *testing.T) {
		f := start(t, agent.Spec{}, tokens)
		f.Store.Denied = denied
		if out := f.ifFull(t); out.End == nil || out.End.Error.Reason != "BUDGET_EXHAUSTED" || f.compacted() != nil {
			t.Errorf("the outcome is %+v", out)
		}
	})
	t.Run("and answers the request in a turn", func(t *testing.T) {
		f := start(t, agent.Spec{}, tokens)
		f.Store.Denied = denied
		f.Request(request(t, 9))
		out, err := f.RunRequestedInTurn(f.Scope)
		if err != nil || out.End == nil || !slices.Equal(out.End.Write.Consume, []int64{9}) || out.End.Write.Events[0].GetWarning().GetReason() != "NOT_COMPACTED" {
			t.Errorf("the outcome is %+v (%v)", out, err)
		}
	})
	t.Run("cuts the view between turns", func(t *testing.T) {
		f := start(t, agent.Spec{}, tokens)
		f.Store.Denied = denied
		f.Active = nil
		f.Request(request(t, 9))
		if out, err := f.RunRequested(f.Scope); err != nil || !out.GoesOn() || f.compacted().GetMethod() != methodCut {
			t.Errorf("the outcome is %+v (%v)", out, err)
		}
	})
}

func request(t *testing.T, id int64) store.Command {
	t.Helper()
	body, err := proto.Marshal(&sessionv1.CompactSessionRequest{Instructions: "keep the names"})
	if err != nil {
		t.Fatal(err)
	}
	return store.Command{ID: id, Kind: store.CommandCompact, User: "ben", Body: body}
}

func TestRequestsAreAnsweredTogether(t *testing.T) {
	f := start(t, agent.Spec{}, budget.Config{}, "they greeted")
	f.Active = nil
	f.Request(request(t, 4))
	f.Request(request(t, 6))
	if out, err := f.RunRequested(f.Scope); err != nil || !out.GoesOn() || f.Requested() {
		t.Fatal(out, err)
	}
	last := f.Writes()[len(f.Writes())-1]
	if !slices.Equal(last.Consume, []int64{4, 6}) || f.compacted().GetTrigger() != triggerRequested || len(f.model.Requests) != 1 {
		t.Errorf("written is %+v", last)
	}
	if asked := f.model.Requests[0].Messages[0].Blocks[0].GetContent().GetText().GetText(); !strings.Contains(asked, "keep the names") {
		t.Error("the request does not say what to keep")
	}
	f.Request(request(t, 8)) // only a summary is left
	if _, err := f.RunRequested(f.Scope); err != nil || !slices.Contains(f.Warnings(), "NOT_COMPACTED") {
		t.Errorf("the warnings are %v (%v)", f.Warnings(), err)
	}
}

func TestARequestOutlivesATurnThatStops(t *testing.T) {
	f := start(t, agent.Spec{}, budget.Config{}, context.Canceled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.Request(request(t, 4))
	if out, err := f.RunRequested(f.InTurn(ctx)); err != nil || !out.Stopped || !f.Requested() {
		t.Errorf("the outcome is %+v (%v)", out, err)
	}
}

func TestTheHooksOutputGoesIntoTheSummary(t *testing.T) {
	ok := &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK, Content: []*commonv1.Content{state.Text("branch: main\n")}}
	failed := &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_ERROR}
	for name, c := range map[string]struct {
		result *toolsv1.CallResult
		output bool
	}{"it prints": {ok, true}, "it fails": {failed, false}, "it breaks off": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			f := start(t, agent.Spec{PreCompaction: "git status", Tools: []string{"Bash"}}, budget.Config{}, "they greeted")
			f.tools.result = c.result
			f.ifFull(t)
			task := f.model.Requests[0].Messages[0].Blocks[0].GetContent().GetText().GetText()
			if strings.Contains(task, "branch: main") != c.output || slices.Contains(f.Warnings(), "PRE_COMPACTION") == c.output || f.compacted() == nil {
				t.Errorf("the warnings are %v", f.Warnings())
			}
		})
	}
}

func TestTheEndOfATurnStopsAnInheritedHook(t *testing.T) {
	f := start(t, agent.Spec{PreCompaction: "git status"}, budget.Config{})
	f.StopHook(f.Scope)
	if len(f.tools.cancelled) != 0 {
		t.Errorf("cancelled %v, though nothing is inherited", f.tools.cancelled)
	}
	f.hook.Inherit(f.Session, []store.Command{request(t, 4)})
	f.Request(request(t, 4))
	f.Active.Undo = true
	f.StopHook(f.Scope)
	if want := []string{"t1.1.compact", "compact.s.4"}; !slices.Equal(f.tools.cancelled, want) {
		t.Errorf("cancelled %v", f.tools.cancelled)
	}
}
