package calls

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
)

// fakeTools answers calls by their tool.
type fakeTools struct {
	mu        sync.Mutex
	answers   map[string][]any // of a tool: pieces or errors, one for each request
	called    []string         // ids
	modes     []commonv1.PermissionMode
	cancelled []string
	reported  []string
	running   int
	most      int
	together  chan struct{} // if not nil, a call ends when it can receive
	onCall    func()
}

func (f *fakeTools) CallTool(ctx context.Context, r *toolsv1.CallToolRequest) (func() (*toolsv1.CallToolResponse, error), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.called, f.modes = append(f.called, r.Call.CallId), append(f.modes, r.Mode)
	if f.onCall != nil {
		f.onCall()
	}
	f.running++
	f.most = max(f.most, f.running)
	var answer any = &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK, Content: []*commonv1.Content{state.Text("done")}}
	if all := f.answers[r.Tool]; len(all) > 0 {
		answer, f.answers[r.Tool] = all[0], all[1:]
	}
	return func() (*toolsv1.CallToolResponse, error) {
		switch r.Tool {
		case "Slow":
			<-ctx.Done()
			return nil, ctx.Err()
		case "Trap":
			synctest.Wait() // for the others of the wave
		}
		if f.together != nil {
			select {
			case <-f.together:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running--
		switch a := answer.(type) {
		case error:
			return nil, remote.Error(a)
		case *toolsv1.CallAsk:
			return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Ask{Ask: a}}, nil
		case *toolsv1.CallDelegated:
			return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Delegated{Delegated: a}}, nil
		default:
			return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Result{Result: a.(*toolsv1.CallResult)}}, nil
		}
	}, nil
}

func (f *fakeTools) CancelCall(_ context.Context, call *commonv1.CallRef) (*toolsv1.CallResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancelled = append(f.cancelled, call.CallId)
	return nil, nil
}

func (f *fakeTools) ReportResult(_ context.Context, call *commonv1.CallRef, _ *toolsv1.CallResult) error {
	f.reported = append(f.reported, call.CallId)
	return nil
}

func (f *fakeTools) ListSessionTools(context.Context, *toolsv1.ListSessionToolsRequest) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error) {
	return []*toolsv1.Tool{{Name: "tools/Read", Parallel: true, ReadOnly: true}, {Name: "tools/Bash"}, {Name: "tools/Slow", Parallel: true}, {Name: "tools/Trap", Parallel: true}, {Name: "tools/Away", Parallel: true}}, nil, nil
}

var spec = agent.Spec{Tools: []string{"Bash", "Read"}}

// newCalls returns the calls of a session whose tools are listed.
func newCalls(t *testing.T, f *turntest.Fixture, tools *fakeTools) *Calls {
	t.Helper()
	set := toolset.New(tools.ListSessionTools)
	if _, err := set.List(f.Scope); err != nil {
		t.Fatal(err)
	}
	return New(Config{Client: tools, Telemetry: turntest.Telemetry(t)}, set, nil)
}

func uses(tools ...string) []*sessionv1.ToolUse {
	var all []*sessionv1.ToolUse
	for _, tool := range tools {
		all = append(all, &sessionv1.ToolUse{Tool: tool, ArgumentsJson: "{}"})
	}
	return all
}

func noFiles([]*sessionv1.ToolUse) error { return nil }

func outcome(t *testing.T, a *state.Turn, call string) sessionv1.ToolOutcome {
	t.Helper()
	r, _, err := a.Result(call)
	if err != nil {
		t.Fatal(err)
	}
	return r.GetOutcome()
}

func TestNeighborsRunAtTheSameTimeIfTheirToolsAllowIt(t *testing.T) {
	f := turntest.New(t, spec)
	tools := &fakeTools{together: make(chan struct{})}
	c := newCalls(t, f, tools)
	m := f.Call(uses("Read", "Read", "Bash", "Bash", "Read")...)
	var waves []int
	go func() {
		for range m.Blocks {
			tools.together <- struct{}{}
		}
	}()
	out, err := c.Make(f.Scope, m, func(wave []*sessionv1.ToolUse) error { waves = append(waves, len(wave)); return nil })
	if err != nil || !out.GoesOn() {
		t.Fatal(out, err)
	}
	if !slices.Equal(waves, []int{2, 1, 1, 1}) || tools.most > 2 || !AllMade(f.Scope, m) {
		t.Errorf("the waves have %v calls, and %d calls ran at the same time", waves, tools.most)
	}
}

func TestACallIsRequestedAgainWithItsIDWhenToolsIsAway(t *testing.T) {
	f := turntest.New(t, spec)
	tools := &fakeTools{answers: map[string][]any{"Bash": {status.Error(codes.Unavailable, "away"), io.EOF}}}
	c := newCalls(t, f, tools)
	again := 0
	c.Again(func(state.Scope) { again++ })
	m := f.Call(uses("Bash")...)
	if _, err := c.Make(f.Scope, m, noFiles); err != nil {
		t.Fatal(err)
	}
	if again != 2 {
		t.Errorf("the workspace was made again %d times", again)
	}
	if !slices.Equal(tools.called, []string{"t1.1.0", "t1.1.0", "t1.1.0"}) || outcome(t, f.Active, "t1.1.0") != sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
		t.Errorf("called %v", tools.called)
	}
	if got := f.Warnings(); !slices.Equal(got, []string{"TOOLS_RETRY"}) {
		t.Errorf("the warnings are %v", got)
	}
}

// TestAModeHoldsForTheNextDecision changes the mode while the first of two calls runs. Nothing has told the turn of it.
func TestAModeHoldsForTheNextDecision(t *testing.T) {
	f := turntest.New(t, spec)
	const plan = commonv1.PermissionMode_PERMISSION_MODE_PLAN
	body, err := proto.Marshal(&sessionv1.SetPermissionModeRequest{PermissionMode: plan})
	if err != nil {
		t.Fatal(err)
	}
	tools := &fakeTools{onCall: func() {
		f.Store.Commands = []store.Command{
			{ID: 1, Kind: store.CommandMode, TurnID: f.Active.ID, Body: body}, {ID: 2, Kind: store.CommandMode, TurnID: "another"},
		}
	}}
	if _, err := newCalls(t, f, tools).Make(f.Scope, f.Call(uses("Bash", "Bash")...), noFiles); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tools.modes, []commonv1.PermissionMode{0, plan}) {
		t.Errorf("the calls are decided on in %v", tools.modes)
	}
}

func TestHowACallEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer any
		want   sessionv1.ToolOutcome
		worker error
		asked  bool
	}{
		"a result":           {&toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_DENIED}, sessionv1.ToolOutcome_TOOL_OUTCOME_DENIED, nil, false},
		"a refusal":          {status.Error(codes.FailedPrecondition, "no"), sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE, nil, false},
		"cancelled before":   {remote.ErrCallCancelled, sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, nil, false},
		"an unclear failure": {status.Error(codes.Internal, "oops"), sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, nil, false},
		"a question":         {&toolsv1.CallAsk{Digest: "d", Rule: "r"}, 0, nil, true},
		"another holder":     {remote.ErrStaleEpoch, 0, store.ErrStaleEpoch, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := turntest.New(t, spec)
			calls := newCalls(t, f, &fakeTools{answers: map[string][]any{"Bash": {c.answer}}})
			m := f.Call(uses("Bash")...)
			_, err := calls.Make(f.Scope, m, noFiles)
			if !errors.Is(err, c.worker) || outcome(t, f.Active, "t1.1.0") != c.want || f.Active.IsAsked("t1.1.0") != c.asked {
				t.Errorf("%v, %v, asked %v", err, outcome(t, f.Active, "t1.1.0"), f.Active.Run.Asked)
			}
			if wait := Park(f.Scope, m).Wait; (wait != nil) != c.asked {
				t.Errorf("the turn waits for %v", wait)
			}
		})
	}
}

func TestTheSessionMakesADelegatedCallAndReportsIt(t *testing.T) {
	f := turntest.New(t, spec)
	list := `{"todos":[{"content":"a","status":"pending","activeForm":"doing a"}]}`
	tools := &fakeTools{answers: map[string][]any{state.TodoTool: {&toolsv1.CallDelegated{Tool: state.TodoTool, ArgumentsJson: list}}}}
	c := newCalls(t, f, tools)
	m := f.Call(&sessionv1.ToolUse{Tool: state.TodoTool, ArgumentsJson: list})
	if _, err := c.Make(f.Scope, m, noFiles); err != nil {
		t.Fatal(err)
	}
	updated := slices.ContainsFunc(f.Events(), func(e *sessionv1.Event) bool { return len(e.GetTodoUpdated().GetTodos()) == 1 })
	if !slices.Equal(tools.reported, []string{"t1.1.0"}) || !updated {
		t.Errorf("reported %v", tools.reported)
	}
}

func TestTheEndOfATurnCancelsTheCallsThatMayHaveBegun(t *testing.T) {
	for name, inherited := range map[string]bool{"of this worker": false, "of an earlier one": true} {
		t.Run(name, func(t *testing.T) {
			f := turntest.New(t, spec)
			tools := &fakeTools{}
			c := newCalls(t, f, tools)
			m := f.Call(uses("Bash", "Bash", "Bash")...)
			f.Active.Run.Asked["t1.1.2"] = state.Question{Digest: "d"}
			want := []string{"t1.1.0", "t1.1.1"}
			if !inherited {
				c.Committed(m.Name)
				c.begun["t1.1.0"] = true
				want = want[:1]
			}
			var write store.Write
			err := c.End(f.Scope, &write, func(u *sessionv1.ToolUse) *sessionv1.ToolResult {
				return Interrupted(u, NotMade(f.Active, u, "It was not made."))
			})
			slices.Sort(tools.cancelled)
			if err != nil || !slices.Equal(tools.cancelled, want) {
				t.Errorf("cancelled %v (%v)", tools.cancelled, err)
			}
			results := write.Messages[0]
			last := results.Blocks[2].GetToolResult().Content[0].GetText().Text
			if len(results.Blocks) != 3 || !strings.Contains(last, "a person's approval") {
				t.Errorf("the results are %v", results)
			}
		})
	}
}

func TestACallIsStoppedWithItsTurn(t *testing.T) {
	f := turntest.New(t, spec)
	ctx, cancel := context.WithCancel(t.Context())
	tools := &fakeTools{together: make(chan struct{}), onCall: cancel}
	c := newCalls(t, f, tools)
	m := f.Call(uses("Bash", "Bash")...)
	out, err := c.Make(f.InTurn(ctx), m, noFiles)
	if err != nil || !out.Stopped {
		t.Fatal(out, err)
	}
	if !slices.Equal(tools.called, tools.cancelled) || len(tools.called) != 1 || f.Active.HasResult("t1.1.1") {
		t.Errorf("called %v, cancelled %v", tools.called, tools.cancelled)
	}
}

func TestNothingOfAnAnswerStartsAfterARuleEndsTheTurn(t *testing.T) {
	ends := &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_DENIED, Interrupt: true, Content: []*commonv1.Content{state.Text("no")}}
	task := &toolsv1.CallDelegated{Tool: state.TodoTool, ArgumentsJson: `{"todos":[]}`}
	for name, c := range map[string]struct {
		answer []string // the tools of the answer's calls; those of Read, Slow, Trap and Away run at the same time, Client is the client's
		called []string // in order of their places
		cut    []string // calls that run when the rule ends the turn
	}{
		"one after the other":         {[]string{"Deny", "Bash", "Bash"}, []string{"0"}, nil},
		"after one that ran":          {[]string{"Bash", "Deny", "Bash"}, []string{"0", "1"}, nil},
		"before a wave":               {[]string{"Deny", "Read", "Read"}, []string{"0"}, nil},
		"between waves":               {[]string{"Read", "Read", "Deny", "Read"}, []string{"0", "1", "2"}, nil},
		"before one of the client":    {[]string{"Deny", "Client"}, []string{"0"}, nil},
		"after one of the client":     {[]string{"Client", "Deny", "Bash"}, []string{"1"}, nil},
		"before one of the session":   {[]string{"Deny", state.TodoTool, state.TodoTool}, []string{"0"}, nil},
		"after one of the session":    {[]string{state.TodoTool, "Deny", state.TodoTool}, []string{"0", "1"}, nil},
		"before one that is asked":    {[]string{"Deny", "Ask", "Bash"}, []string{"0"}, nil},
		"after one that is asked":     {[]string{"Ask", "Deny", "Bash"}, []string{"0", "1"}, nil},
		"two that would end it":       {[]string{"Deny", "Deny"}, []string{"0"}, nil},
		"in a wave, others still run": {[]string{"Slow", "Trap", "Slow"}, []string{"0", "1", "2"}, []string{"0", "2"}},
		"one waits for tools":         {[]string{"Away", "Trap"}, []string{"0", "0", "1"}, []string{"0"}}, // at once, and in vain once more
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := turntest.New(t, spec)
				tools := &fakeTools{answers: map[string][]any{
					"Deny": {ends, ends}, "Trap": {ends}, "Away": {status.Error(codes.Unavailable, "away")}, "Ask": {&toolsv1.CallAsk{Digest: "d", Rule: "r"}}, state.TodoTool: {task, task},
				}}
				calls := newCalls(t, f, tools)
				f.Active.Client["Client"] = &sessionv1.ClientTool{Name: "Client"}
				m := f.Call(uses(c.answer...)...)
				calls.Committed(m.Name)
				if out, err := calls.Make(f.Scope, m, noFiles); err != nil || !out.GoesOn() {
					t.Fatal(out, err)
				}
				slices.Sort(tools.called)
				slices.Sort(tools.cancelled)
				if got := places(tools.called); !slices.Equal(got, c.called) || f.Active.Run.Interrupt == "" {
					t.Errorf("called %v, want %v; the rule said %q", got, c.called, f.Active.Run.Interrupt)
				}
				if got := places(tools.cancelled); !slices.Equal(got, c.cut) {
					t.Errorf("stopped %v, want %v", got, c.cut)
				}
				for _, place := range c.cut {
					if got := outcome(t, f.Active, "t1.1."+place); got != sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED {
						t.Errorf("call %s ended as %v", place, got)
					}
				}
			})
		})
	}
}

// places returns the places of calls in their answer.
func places(ids []string) (all []string) {
	for _, id := range ids {
		all = append(all, id[strings.LastIndex(id, ".")+1:])
	}
	return all
}

func TestTheClientsCallsAreChecked(t *testing.T) {
	f := turntest.New(t, spec)
	f.Active.Client["Pick"] = &sessionv1.ClientTool{Name: "Pick", InputSchemaJson: `{"type":"object","required":["n"]}`}
	c := newCalls(t, f, &fakeTools{})
	m := f.Call(&sessionv1.ToolUse{Tool: "Pick", ArgumentsJson: `{}`}, &sessionv1.ToolUse{Tool: "Pick", ArgumentsJson: `{"n":1}`})
	if _, err := c.Make(f.Scope, m, noFiles); err != nil {
		t.Fatal(err)
	}
	if outcome(t, f.Active, "t1.1.0") != sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR || f.Active.HasResult("t1.1.1") {
		t.Errorf("the results are %v", f.Active.Run.Results)
	}
	if wait := Park(f.Scope, m).Wait; wait == nil || !slices.Equal(wait.CallIDs, []string{"t1.1.1"}) || len(wait.Write.Wait) != 1 {
		t.Errorf("the turn waits for %v", wait)
	}
}

func TestNotesComeWithTheNextResults(t *testing.T) {
	f := turntest.New(t, spec)
	c := newCalls(t, f, &fakeTools{})
	c.AddNotes("a repository is missing")
	c.AddNotes("")
	for step, want := range []int{2, 1} {
		m := f.Call(uses("Bash")...)
		if _, err := c.Make(f.Scope, m, noFiles); err != nil {
			t.Fatal(err)
		}
		var write store.Write
		if err := c.AddResults(f.Scope, &write, m); err != nil {
			t.Fatal(err)
		}
		if got := len(write.Messages[0].Blocks[0].GetToolResult().Content); got != want || f.Active.Proto.Steps != int32(step+1) {
			t.Errorf("step %d has %d parts of a result", f.Active.Proto.Steps, got)
		}
	}
}

func TestRetriesWaitForTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := turntest.New(t, spec)
		away := slices.Repeat([]any{status.Error(codes.Unavailable, "away")}, 20)
		c := newCalls(t, f, &fakeTools{answers: map[string][]any{"Bash": away}})
		m := f.Call(uses("Bash")...)
		if _, err := c.Make(f.Scope, m, noFiles); err != nil || !AllMade(f.Scope, m) {
			t.Error(err)
		}
	})
}
