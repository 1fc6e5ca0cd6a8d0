package integration

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// startGreeter runs a service with an agent that takes options.
func startGreeter(t *testing.T, more ...func(*session.Config)) (*fixture, *modeltest.Server) {
	t.Helper()
	wire := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"done"}}))
	limits := catalog.Limits{ContextTokens: 100_000, MaxOutputTokens: 5000, ThinkingTokens: 2000, Thinking: "budget"}
	return start(t, "fallback: {steps: [{text: [unused]}]}", func(c *session.Config) {
		c.Models.Providers["wire"] = catalog.Provider{Kind: "anthropic", BaseURL: wire.URL, Key: config.Secret(modeltest.Key)}
		c.Models.Models = map[string]catalog.Limits{"wire:small": limits, "wire:large": limits, "wire:dear": limits}
		c.Models.Model = "wire:small"
		c.Agents["greeter"] = agent.Spec{Profile: "full", Prompt: "Greet {{name}}.", Parameters: []string{"name"}, Models: []string{"wire:large"}}
		for _, change := range more {
			change(c)
		}
	}), wire
}

func TestATurnHasItsOptions(t *testing.T) {
	t.Parallel()
	f, wire := startGreeter(t)
	ctx := t.Context()
	made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{
		Agent: "greeter", TurnOptions: &sessionv1.TurnOptions{Context: "Be brief.", Parameters: map[string]string{"name": "all"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := made.Session.Name
	turn := func(o *sessionv1.TurnOptions, model, system string, thinking any) {
		t.Helper()
		var started *sessionv1.TurnStarted
		for _, e := range f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "go", Options: o}, nil) {
			if e.GetTurnStarted() != nil {
				started = e.GetTurnStarted()
			}
		}
		all := wire.Requests()
		got := all[len(all)-1]
		budget, _ := got.Body["thinking"].(map[string]any)
		if got.Model != model || got.System != system || budget["budget_tokens"] != thinking {
			t.Errorf("the model got %s, %q, %v; want %s, %q, %v", got.Model, got.System, budget, model, system, thinking)
		}
		if started.Model != "wire:"+model || started.Options == nil || started.Options.Context == "" {
			t.Errorf("turn.started has %v", started)
		}
	}
	turn(nil, "small", "Greet all.\n\nBe brief.", 2000.0)
	turn(&sessionv1.TurnOptions{
		Model: "wire:large", ThinkingTokens: proto.Int64(0), Context: "In French.", Parameters: map[string]string{"name": "Ann"},
	}, "large", "Greet Ann.\n\nIn French.", nil)
	_, err = f.UpdateSession(ctx, &sessionv1.UpdateSessionRequest{Name: s, TurnOptions: &sessionv1.TurnOptions{
		Model: "wire:large", ThinkingTokens: proto.Int64(1500), Context: "Now.", Parameters: map[string]string{"name": "Bob"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	turn(nil, "large", "Greet Bob.\n\nNow.", 1500.0)
}

func TestOptionsThatTheAgentDoesNotAllowAreRefused(t *testing.T) {
	t.Parallel()
	f, wire := startGreeter(t)
	ctx := t.Context()
	name := map[string]string{"name": "Ann"}
	s := f.sessionOf(ctx, t, "greeter").Name
	for field, o := range map[string]*sessionv1.TurnOptions{
		"model":           {Model: "wire:dear", Parameters: name},
		"parameters":      {Parameters: map[string]string{"name": "Ann", "x": "y"}},
		"thinking_tokens": {ThinkingTokens: proto.Int64(2001), Parameters: name},
	} {
		_, turn := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "go", Options: o})
		_, update := f.UpdateSession(ctx, &sessionv1.UpdateSessionRequest{Name: s, TurnOptions: o})
		_, created := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "greeter", TurnOptions: o}})
		for prefix, err := range map[string]error{"options.": turn, "turn_options.": update, "session.turn_options.": created} {
			detail, _ := apierr.Detail[*errdetails.BadRequest](err)
			if status.Code(err) != codes.InvalidArgument || len(detail.GetFieldViolations()) != 1 || detail.FieldViolations[0].Field != prefix+field {
				t.Errorf("%s%s: %v, %v", prefix, field, err, detail)
			}
		}
	}
	_, missing := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "go"})
	_, first := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "none", Session: &sessionv1.Session{
		Agent: "greeter", FirstMessage: &sessionv1.FirstMessage{Text: "go"},
	}})
	for what, err := range map[string]error{"a turn": missing, "a first message": first} {
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s without a parameter: %v", what, err)
		}
	}
	if got := f.states(ctx, t, s); got != "" || len(wire.Requests()) > 0 {
		t.Errorf("after refusals there are %s and %d requests", got, len(wire.Requests()))
	}
}

func TestTheBuiltInAgentsTakeEveryUsableModel(t *testing.T) {
	t.Parallel()
	f, wire := startGreeter(t)
	ctx := t.Context()
	_, err := f.models().CreateModel(ctx, &sessionv1.CreateModelRequest{ModelId: "quick", Spec: &sessionv1.ModelSpec{Target: "wire:small"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, builtIn := range []string{"coder", "assistant"} {
		for m, runsOn := range map[string]string{
			"wire:dear": "wire:dear", "wire:small:mode=thinking": "wire:small", "wire:in-no-table": "wire:in-no-table", "tenant:quick": "wire:small",
		} {
			made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{
				Session: &sessionv1.Session{Agent: builtIn, FirstMessage: &sessionv1.FirstMessage{Text: "go", Options: &sessionv1.TurnOptions{Model: m}}},
				Limits:  &sessionv1.TurnLimits{MaxSteps: 3},
			})
			if err != nil {
				t.Errorf("%s with %s: %v", builtIn, m, err)
				continue
			}
			f.waitFor(ctx, t, made.Session.Name, func(e *sessionv1.Event) bool { return e.GetTurnFinished() != nil })
			turn, err := f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: made.Session.FirstTurn})
			if err != nil || turn.Turn.Model != runsOn || turn.Turn.Limits.MaxSteps != 3 {
				t.Errorf("%s with %s: %v, %v", builtIn, m, turn, err)
			}
		}
	}
	before := len(wire.Requests())
	for m, want := range map[string]string{
		"openai:gpt-5.5": "OPENAI_API_KEY", "nowhere:x": "is not known", "scripted:none": "is not known", "tenant:none": "the tenant has no model", "wire:small:mode=odd": "there is no mode",
	} {
		_, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "none", Session: &sessionv1.Session{
			Agent: "coder", FirstMessage: &sessionv1.FirstMessage{Text: "go", Options: &sessionv1.TurnOptions{Model: m}},
		}})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", m, err, want)
		}
	}
	if _, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/none"}); status.Code(err) != codes.NotFound || len(wire.Requests()) != before {
		t.Errorf("a refusal left a session: %v", err)
	}
}

func TestTheGreetingOfASessionHasItsParameters(t *testing.T) {
	t.Parallel()
	f, _ := startGreeter(t, func(c *session.Config) {
		c.Agents["host"] = agent.Spec{Profile: "full", Prompt: "Greet {{name}}.", Parameters: []string{"name"}, Greeting: "Hello {{name}}!"}
	})
	ctx := t.Context()
	made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{
		Agent: "host", TurnOptions: &sessionv1.TurnOptions{Parameters: map[string]string{"name": "Ann"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	events, err := f.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: made.Session.Name})
	if err != nil || events.Events[0].GetSessionCreated().GetGreeting() != "Hello Ann!" {
		t.Errorf("the log begins with %v, %v", events.GetEvents(), err)
	}
	messages, err := f.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: made.Session.Name})
	if err != nil || messages.Messages[0].Blocks[0].GetContent().GetText().GetText() != "Hello Ann!" {
		t.Errorf("the conversation begins with %v, %v", messages.GetMessages(), err)
	}
}
