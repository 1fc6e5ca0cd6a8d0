package step

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/compact"
	"github.com/fairlead/fairlead/services/session/internal/turn/inbox"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

type fixture struct {
	*turntest.Fixture
	*Stepper
	model *turntest.Answers
}

func start(t *testing.T, s agent.Spec, answers ...any) *fixture {
	t.Helper()
	f := &fixture{Fixture: turntest.New(t, s), model: &turntest.Answers{Answers: answers}}
	f.Resolve = func(string) (state.Resolved, error) { return turntest.Model(f.model), nil }
	tel := turntest.Telemetry(t)
	tools := toolset.New(turntest.Lists())
	c := calls.New(calls.Config{Telemetry: tel}, tools, nil)
	w := workspace.New(workspace.Config{}, tools, c.End)
	sp := spend.New(spend.Config{Telemetry: tel})
	f.Stepper = &Stepper{
		Telemetry: tel, Tools: tools, Inbox: inbox.New(), Spend: sp, Calls: c, Expect: func() {},
		Compactor: compact.New(compact.Config{SummaryTokens: 100}, tel, sp, w, &compact.Hook{Calls: c, Workspace: w}),
	}
	return f
}

func answer(stop string, blocks ...*sessionv1.Block) *model.Response {
	return &model.Response{Blocks: blocks, StopReason: stop, Usage: &sessionv1.Usage{InputTokens: 10, OutputTokens: 5}}
}

func use(tool, arguments string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{Tool: tool, ArgumentsJson: arguments}}}
}

func TestHowAStepEndsTheTurn(t *testing.T) {
	const complete, partial, failed = sessionv1.TurnState_TURN_STATE_COMPLETE, sessionv1.TurnState_TURN_STATE_PARTIAL, sessionv1.TurnState_TURN_STATE_FAILED
	steps := func(f *fixture) { f.Active.Proto.Steps = 10 }
	tokens := func(f *fixture) { f.Active.Proto.Usage = &sessionv1.Usage{OutputTokens: 10_000} }
	nothing := func(*fixture) {}
	for name, c := range map[string]struct {
		prepare func(*fixture)
		answer  any
		state   sessionv1.TurnState // 0: the turn goes on
		reason  string
	}{
		"an answer":              {nothing, "Hello.", complete, ""},
		"no answer":              {nothing, answer("end_turn"), complete, ""},
		"an answer that is cut":  {nothing, answer("max_tokens", state.TextBlock("He")), partial, "MAX_OUTPUT_TOKENS"},
		"a refusal":              {nothing, answer("refusal", state.TextBlock("No.")), failed, "MODEL_REFUSAL"},
		"calls":                  {nothing, answer("tool_use", use("Bash", "{}")), 0, ""},
		"a message waits":        {func(f *fixture) { f.Active.Run.Steer = []string{"t2"} }, "Hello.", 0, ""},
		"too many steps":         {steps, nil, partial, "MAX_STEPS"},
		"too many tokens":        {tokens, nil, partial, "MAX_OUTPUT_TOKENS"},
		"a wrong key":            {nothing, &model.Error{Kind: model.Authentication, Status: 401}, failed, "MODEL_AUTHENTICATION"},
		"a refused request":      {nothing, &model.Error{Kind: model.Refused, Status: 400}, failed, "MODEL_REQUEST_REFUSED"},
		"no money":               {nothing, &model.Error{Kind: model.Billing, Status: 402}, failed, "MODEL_REQUEST_REFUSED"},
		"a context that is full": {nothing, &model.Error{Kind: model.ContextFull, Status: 400}, failed, "CONTEXT_FULL"},
		"an unknown failure":     {nothing, errors.New("oops"), failed, "MODEL_UNAVAILABLE"},
		"an unknown model": {func(f *fixture) {
			f.Resolve = func(string) (state.Resolved, error) { return state.Resolved{}, errors.New("no") }
		}, nil, failed, "MODEL_REQUEST_REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, agent.Spec{}, c.answer)
			c.prepare(f)
			out, err := f.Run(f.Scope)
			if err != nil {
				t.Fatal(err)
			}
			if c.state == 0 {
				if !out.GoesOn() {
					t.Errorf("the outcome is %+v", out.End)
				}
				return
			}
			if out.End == nil || out.End.State != c.state || out.End.Error.GetReason() != c.reason {
				t.Errorf("the outcome is %+v", out.End)
			}
		})
	}
}

func TestAFailedCallOfTheModelIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &model.Error{Kind: model.Unavailable, Status: 529}
		f := start(t, agent.Spec{}, away, away, "Hello.")
		if out, err := f.Run(f.Scope); err != nil || out.End == nil || len(f.model.Requests) != 3 {
			t.Fatalf("the outcome is %+v (%v)", out, err)
		}
		var restarted int
		for _, e := range f.Events() {
			if e.GetStepRestarted() != nil {
				restarted++
			}
		}
		if restarted != 2 || !slices.Equal(f.Warnings(), []string{"MODEL_RETRY", "MODEL_RETRY"}) {
			t.Errorf("restarted %d times, warned %v", restarted, f.Warnings())
		}
		f = start(t, agent.Spec{}, slices.Repeat([]any{away}, maxAttempts+1)...)
		if out, err := f.Run(f.Scope); err != nil || out.End.Error.Reason != "MODEL_UNAVAILABLE" || len(f.model.Requests) != maxAttempts {
			t.Errorf("the outcome is %+v after %d attempts (%v)", out, len(f.model.Requests), err)
		}
	})
}

func TestWhatAServerDoesEachTimeIsNotTriedAgain(t *testing.T) {
	odd := func(what string) *model.Error {
		return &model.Error{Kind: model.Unavailable, Malformed: true, Message: "the stream is malformed: " + what}
	}
	for name, c := range map[string]struct {
		answers  []any
		attempts int
		reason   string // empty: the turn is complete
	}{
		"once":                        {[]any{odd("a"), "Hello."}, 2, ""},
		"twice":                       {[]any{odd("a"), odd("a"), "Hello."}, 2, "MODEL_UNAVAILABLE"},
		"in two ways":                 {[]any{odd("a"), odd("b"), "Hello."}, 3, ""},
		"before and after an absence": {[]any{odd("a"), &model.Error{Kind: model.Unavailable, Status: 529}, odd("a"), "Hello."}, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, agent.Spec{}, c.answers...)
				out, err := f.Run(f.Scope)
				if err != nil || out.End == nil || out.End.Error.GetReason() != c.reason || len(f.model.Requests) != c.attempts {
					t.Errorf("the outcome is %+v after %d attempts (%v)", out.End, len(f.model.Requests), err)
				}
			})
		})
	}
}

func TestAStoppedAnswerKeepsItsText(t *testing.T) {
	f := start(t, agent.Spec{})
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	f.Resolve = func(string) (state.Resolved, error) {
		return turntest.Model(streaming(func(emit func(model.Delta) error) error {
			err := errors.Join(emit(model.Delta{Kind: model.TextStart}), emit(model.Delta{Kind: model.TextDelta, Text: "Hel"}))
			cancel(interrupted)
			return errors.Join(err, ctx.Err())
		})), nil
	}
	out, err := f.Run(f.InTurn(ctx))
	if err != nil || out.End == nil || !errors.Is(out.End.Cause, interrupted) {
		t.Fatalf("the outcome is %+v (%v)", out, err)
	}
	if m := out.End.Write.Messages; len(m) != 1 || m[0].Blocks[0].GetContent().GetText().Text != "Hel" || f.Last() != m[0] {
		t.Errorf("kept is %v", m)
	}
	used := f.Active.Proto.GetUsage()
	if added := out.End.Write.AddUsage; !used.GetEstimated() || used.GetInputTokens() < 1 || used.GetOutputTokens() != 1 || !proto.Equal(used, added) {
		t.Errorf("the turn has used %v, the session %v more", used, added)
	}
}

// streaming is a model that calls a function.
type streaming func(emit func(model.Delta) error) error

func (s streaming) Stream(_ context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
	return nil, s(emit)
}

func TestAnAnswerThatNeverEndsIsCut(t *testing.T) {
	f := start(t, agent.Spec{})
	f.Resolve = func(string) (state.Resolved, error) {
		return turntest.Model(streaming(func(emit func(model.Delta) error) error {
			err := emit(model.Delta{Kind: model.TextStart})
			for err == nil {
				err = emit(model.Delta{Kind: model.TextDelta, Text: strings.Repeat("x", 10_000)})
			}
			return err
		})), nil
	}
	if out, err := f.Run(f.Scope); err != nil || out.End.Error.Reason != "MAX_OUTPUT_TOKENS" || len(out.End.Write.Messages) != 1 {
		t.Errorf("the outcome is %+v (%v)", out, err)
	}
}

func TestAToolsRefusedContentIsWithheld(t *testing.T) {
	refusal := &model.Error{Kind: model.Refused, Status: 400, Message: "image exceeds the limit", ProviderText: "image exceeds the limit"}
	f := start(t, agent.Spec{}, refusal, "Sorry.")
	f.Call(&sessionv1.ToolUse{Tool: "Read"})
	result := state.TextResult("t1.1.0", sessionv1.ToolOutcome_TOOL_OUTCOME_OK, "")
	result.Content = append(result.Content, image())
	f.Say(sessionv1.Role_ROLE_USER, &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: result}})
	out, err := f.Run(f.Scope)
	if err != nil || out.End == nil || out.End.State != sessionv1.TurnState_TURN_STATE_COMPLETE || !slices.Contains(f.Warnings(), "CONTENT_REFUSED") {
		t.Errorf("the outcome is %+v (%v), warned %v", out, err, f.Warnings())
	}
}

func TestTheAgentsVerdictEndsTheTurn(t *testing.T) {
	output := config.JSON(`{"type":"object","required":["n"]}`)
	valid, invalid := `{"request_status":"COMPLETE","summary":"done","output":{"n":1}}`, `{"request_status":"COMPLETE","summary":"done","output":{}}`
	for name, c := range map[string]struct {
		calls   []string
		prepare func(*fixture)
		ends    bool
	}{
		"valid":                     {[]string{valid}, func(*fixture) {}, true},
		"invalid":                   {[]string{invalid}, func(*fixture) {}, false},
		"twice":                     {[]string{valid, valid}, func(*fixture) {}, true},
		"a new message has come":    {[]string{valid}, func(f *fixture) { f.Active.Run.Steer = []string{"t2"} }, false},
		"its answer was cut off":    {[]string{valid}, func(f *fixture) { f.Active.Run.Finished = finished("max_tokens") }, false},
		"first invalid, then valid": {[]string{invalid, valid}, func(*fixture) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, agent.Spec{OutputSchema: output, Verdict: "tool"})
			var uses []*sessionv1.ToolUse
			for _, arguments := range c.calls {
				uses = append(uses, &sessionv1.ToolUse{Tool: verdict.Tool, ArgumentsJson: arguments})
			}
			m := f.Call(uses...)
			c.prepare(f)
			out, err := f.CommitResults(f.Scope, m)
			if err != nil || (out.End != nil) != c.ends {
				t.Fatalf("the outcome is %+v (%v)", out.End, err)
			}
			if c.ends && (out.End.State != sessionv1.TurnState_TURN_STATE_COMPLETE || f.Active.Proto.OutputJson == "") {
				t.Errorf("the turn ends as %+v", out.End)
			}
			if results := f.Last(); len(results.Blocks) != len(c.calls) || f.Active.Proto.Steps != 1 {
				t.Errorf("the results are %v", results)
			}
		})
	}
}

func TestAnAgentIsAskedForItsOutput(t *testing.T) {
	f := start(t, agent.Spec{OutputSchema: config.JSON(`{"type":"object"}`), Verdict: "tool"})
	for range maxOutputAsks {
		if out, err := Conclude(f.Scope, store.Write{}); err != nil || !out.GoesOn() || f.Last().Role != sessionv1.Role_ROLE_USER {
			t.Fatal(out, err)
		}
	}
	if out, err := Conclude(f.Scope, store.Write{}); err != nil || out.End.Error.Reason != "OUTPUT_MISSING" {
		t.Errorf("the outcome is %+v (%v)", out, err)
	}
}

func finished(stopReason string) []byte {
	b, err := proto.Marshal(&sessionv1.StepFinished{StopReason: stopReason})
	if err != nil {
		panic(err)
	}
	return b
}

func image() *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{Data: []byte("png"), MediaType: "image/png"}}}
}

// endsTurn is a model whose turn ends after its first piece of text.
type endsTurn struct{ end context.CancelFunc }

func (m endsTurn) Stream(_ context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
	for _, d := range []model.Delta{{Kind: model.TextStart}, {Kind: model.TextDelta, Text: "one"}} {
		if err := emit(d); err != nil {
			return nil, err
		}
	}
	m.end()
	return nil, emit(model.Delta{Kind: model.TextDelta, Text: " two"})
}

func TestATextThatComesAfterTheTurnsEndIsInNeitherTheLogNorTheTranscript(t *testing.T) {
	f := start(t, agent.Spec{})
	ctx, end := context.WithCancel(t.Context())
	f.Resolve = func(string) (state.Resolved, error) { return turntest.Model(endsTurn{end}), nil }
	out, err := f.Run(f.InTurn(ctx))
	if err != nil || out.End == nil || !errors.Is(out.End.Cause, context.Canceled) {
		t.Fatalf("the outcome is %+v (%v)", out.End, err)
	}
	if got := f.Last().Blocks[0].GetContent().GetText().GetText(); got != "one" {
		t.Errorf("the transcript says %q", got)
	}
	var seen strings.Builder
	for _, w := range f.Writes() {
		for _, e := range w.Events {
			seen.WriteString(e.GetTextDelta().GetText())
		}
	}
	if seen.String() != "one" {
		t.Errorf("people saw %q", seen.String())
	}
}
