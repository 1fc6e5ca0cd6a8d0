package integration

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// wireContext is the context of the fake providers, in tokens.
const wireContext = 4000

// onTheWire has the model be one of a fake provider that speaks a real format and
// enforces its context. known is what the catalog says of it.
func onTheWire(t *testing.T, kind string, bytesEach int, known int64, script modeltest.Script) (*modeltest.Server, func(*session.Config)) {
	t.Helper()
	var s *modeltest.Server
	if kind == "anthropic" {
		s = modeltest.Anthropic(t, modeltest.Context(wireContext, bytesEach, script))
	} else {
		s = modeltest.OpenAI(t, modeltest.ChatContext(wireContext, bytesEach, script))
	}
	return s, func(c *session.Config) {
		c.Models.Providers["wire"] = catalog.Provider{Kind: kind, BaseURL: s.URL, Key: config.Secret(modeltest.Key)}
		c.Models.Models = map[string]catalog.Limits{"wire:small": {ContextTokens: known, MaxOutputTokens: 500}}
		c.Models.Model = "wire:small"
	}
}

// TestOneMessageLongerThanTheContextFailsNoTurn has the last message alone, and
// one step's results alone, be longer than the context, whether the session
// knows the context, does not, or believes that it all fits.
func TestOneMessageLongerThanTheContextFailsNoTurn(t *testing.T) {
	t.Parallel()
	const long = 48_000
	said := "begin " + strings.Repeat("äöü word ", long/12) + " end"
	calls := func(n int) (all []modeltest.Call) {
		for i := range n {
			all = append(all, modeltest.Call{ID: fmt.Sprintf("c%d", i), Name: "Long", Input: fmt.Sprintf(`{"n":%d}`, i)})
		}
		return all
	}
	for name, tt := range map[string]struct {
		message string
		calls   int
	}{
		"a message": {said, 0}, "a result": {"go", 1}, "many results of one step": {"go", 6},
	} {
		for belief, b := range map[string]struct {
			bytesEach int
			known     int64
		}{
			"known": {3, wireContext}, "not known": {3, 0}, "believed to fit": {1, 100_000},
		} {
			for _, kind := range []string{"anthropic", "openai"} {
				t.Run(name+", "+belief+", "+kind, func(t *testing.T) {
					t.Parallel()
					wire, change := onTheWire(t, kind, b.bytesEach, b.known, func(r modeltest.Request) modeltest.Step {
						if tt.calls > 0 && len(r.Messages()) < 3+map[string]int{"openai": 1}[kind] && r.LastResult == "" {
							return modeltest.Step{Calls: calls(tt.calls)}
						}
						return modeltest.Step{Text: []string{"through"}}
					})
					f := start(t, "fallback: {steps: [{text: [unused]}]}", change, withSpec(func(s *agent.Spec) { s.Tools = []string{"Long"} }))
					s := f.session(t.Context(), t)
					events := f.turn(t.Context(), t, s, tt.message)
					if end := finished(t, events); end.State != complete || end.FinalText != "through" {
						t.Fatalf("the turn ended %v after %s", end, names(events))
					}
					done := compacted(events)
					if len(done) == 0 || len(done) > 8 || done[0].Method != "cut" || done[0].TokensBefore <= done[0].TokensAfter || done[0].TokensAfter == 0 {
						t.Errorf("compactions: %v", done)
					}
					if broken := wire.Refused(); len(broken) > 0 {
						t.Errorf("the provider's rules were broken: %v", broken)
					}
					f.isCut(t, s, wire.Requests(), tt.message, tt.calls)
				})
			}
		}
	}
}

// isCut checks that the model saw the beginning and the end and was told what is
// missing, and that the conversation has all of it.
func (f *fixture) isCut(t *testing.T, s string, requests []modeltest.Request, message string, calls int) {
	t.Helper()
	last := requests[len(requests)-1]
	seen, want := last.LastResult, longResult
	if calls == 0 {
		seen, want = last.UserText, message
	}
	if len(seen) >= len(want) || !strings.Contains(seen, want[:12]) || !strings.HasSuffix(seen, want[len(want)-3:]) || !strings.Contains(seen, "bytes left out") {
		t.Errorf("the model saw %d bytes: %.150q … %q", len(seen), seen, seen[max(0, len(seen)-100):])
	}
	whole := 0
	for _, m := range f.messages(t.Context(), t, s) {
		for _, b := range m.Blocks {
			if b.GetContent().GetText().GetText() == want {
				whole++
			}
			for _, c := range b.GetToolResult().GetContent() {
				if c.GetText().GetText() == want {
					whole++
				}
			}
		}
	}
	if whole != max(calls, 1) {
		t.Errorf("%d messages and results are kept whole, want %d", whole, max(calls, 1))
	}
}

// TestWhatCannotFitIsRefusedBeforeATurnIsAccepted has a prompt, an agent's tools,
// and a client's, that leave no room for any message.
func TestWhatCannotFitIsRefusedBeforeATurnIsAccepted(t *testing.T) {
	t.Parallel()
	small := func(c *session.Config) {
		c.Models.Models = map[string]catalog.Limits{"play:test": {ContextTokens: 1000, MaxOutputTokens: 100}}
	}
	f := start(t, "fallback: {steps: [{text: [ok]}]}", small)
	s := f.session(t.Context(), t)
	tool := func(description string) []*sessionv1.ClientTool {
		return []*sessionv1.ClientTool{{Name: "mine", Description: description, InputSchemaJson: "{}"}}
	}
	_, err := f.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: s, Text: "hi", ClientTools: tool(strings.Repeat("word ", 800))})
	if status.Code(err) != codes.InvalidArgument || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CONTEXT_FULL) || !strings.Contains(err.Error(), "the model's context has 1000") {
		t.Errorf("tools that leave no room: %v", err)
	}
	if _, err := f.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: s, Text: "hi", ClientTools: tool("short")}); err != nil {
		t.Error(err)
	}
	huge := start(t, "fallback: {steps: [{text: [ok]}]}", small, withSpec(func(s *agent.Spec) { s.Tools = []string{"Huge"} }))
	_, err = huge.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: huge.session(t.Context(), t), Text: "hi"})
	if status.Code(err) != codes.InvalidArgument || !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CONTEXT_FULL) {
		t.Errorf("an agent's tools that leave no room: %v", err)
	}
	c := f.config
	c.Data = t.TempDir()
	small(&c)
	spec := c.Agents["tester"]
	spec.Prompt = strings.Repeat("word ", 800)
	c.Agents = map[string]agent.Spec{"tester": spec}
	if _, err := session.New(t.Context(), c, session.Deps{}); err == nil || !strings.Contains(err.Error(), `agent "tester": prompt: about 1000 tokens; the context of its model play:test has 1000`) {
		t.Errorf("a prompt that leaves no room: %v", err)
	}
}
