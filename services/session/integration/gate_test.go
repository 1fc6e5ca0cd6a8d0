package integration

import (
	"fmt"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// cutShort has an answer whose last call is whole only by chance.
const cutShort = `
turns:
  - when: work
    steps:
      - tools: [{name: Read, input: {file_path: a}}, {name: Bash, input: {command: rm -r x}}]
        stop_reason: max_tokens
      - text: [Done]
`

const cutShortShape = `user: "work"
assistant: use Read, use Bash
user: OK, ERROR
assistant: "Done"`

// wires runs a test with a provider of each wire format that plays the steps.
func wires(t *testing.T, test func(t *testing.T, play func(...modeltest.Step) (*modeltest.Server, func(*session.Config)))) {
	for name, serve := range map[string]func(testing.TB, modeltest.Script) *modeltest.Server{
		"anthropic": modeltest.Anthropic, "openai chat": modeltest.OpenAI, "openai responses": modeltest.Responses,
	} {
		t.Run(name, func(t *testing.T) {
			kind, api, _ := strings.Cut(name, " ")
			test(t, func(steps ...modeltest.Step) (*modeltest.Server, func(*session.Config)) {
				s := serve(t, modeltest.Sequence(steps...))
				return s, func(c *session.Config) {
					c.Models.Providers["wire"] = catalog.Provider{Kind: kind, API: api, BaseURL: s.URL, Key: config.Secret(modeltest.Key)}
					c.Models.Models = map[string]catalog.Limits{"wire:small": {ContextTokens: 100_000, MaxOutputTokens: 5000}}
					c.Models.Model = "wire:small"
				}
			})
		})
	}
}

// lastResults are the texts of the results in the last message that has any.
func lastResults(ms []*sessionv1.Message) (texts []string) {
	for _, m := range ms {
		var of []string
		for _, b := range m.Blocks {
			if r := b.GetToolResult(); r != nil && len(r.Content) > 0 {
				of = append(of, strings.TrimPrefix(r.Outcome.String(), "TOOL_OUTCOME_")+": "+r.Content[0].GetText().GetText())
			}
		}
		if len(of) > 0 {
			texts = of
		}
	}
	return texts
}

// stillAnswers checks that the session takes another ordinary message, and that no
// request has broken the provider's rules.
func (f *fixture) stillAnswers(t *testing.T, s string, wire *modeltest.Server) {
	t.Helper()
	if end := finished(t, f.turn(t.Context(), t, s, "and now?")); end.State != complete {
		t.Errorf("the next message ended %v", end)
	}
	if broken := wire.Refused(); len(broken) > 0 {
		t.Errorf("the provider's rules were broken: %v", broken)
	}
}

func TestACallThatTheTokenLimitStoppedIsNotMade(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]string{
		"before its arguments": "", "in its arguments": `{"command":"ec`, "with arguments that are whole by chance": `{"command":"echo"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wires(t, func(t *testing.T, play func(...modeltest.Step) (*modeltest.Server, func(*session.Config))) {
				wire, change := play(modeltest.Step{StopReason: "max_tokens", Calls: []modeltest.Call{
					{ID: "a", Name: "Read", Input: `{"file_path":"a"}`}, {ID: "b", Name: "Bash", Input: cut},
				}}, modeltest.Step{Text: []string{"done"}})
				f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
				s := f.session(t.Context(), t)
				if end := finished(t, f.turn(t.Context(), t, s, "go")); end.State != complete || end.FinalText != "done" {
					t.Errorf("the turn ended %v", end)
				}
				if len(f.peers.executed) != 1 {
					t.Errorf("%d calls were executed, want the first alone", len(f.peers.executed))
				}
				got := lastResults(f.messages(t.Context(), t, s))
				if len(got) != 2 || !strings.HasPrefix(got[0], "OK:") || !strings.HasPrefix(got[1], "ERROR:") || !strings.Contains(got[1], "limit of output tokens") {
					t.Errorf("the results are %q", got)
				}
				if told := wire.Requests()[1].LastResult; !strings.Contains(told, "This call was not made") {
					t.Errorf("the model was told %q", told)
				}
				f.stillAnswers(t, s, wire)
			})
		})
	}
}

func TestAClientIsAskedOnlyForCallsWhoseArgumentsFit(t *testing.T) {
	t.Parallel()
	tool := &sessionv1.ClientTool{Name: "where", InputSchemaJson: `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`}
	for name, c := range map[string]struct{ arguments, fault string }{
		"an array":             {`[]`, "not a JSON object but an array"},
		"text":                 {`"text"`, "not a JSON object but a string"},
		"a number":             {`7`, "not a JSON object but a number"},
		"half an object":       {`{"n":1`, "not valid JSON"},
		"two objects":          {`{"n":1}{"n":2}`, "something follows"},
		"a comma too many":     {`{"n":1,}`, "not valid JSON"},
		"JSON in a fence":      {"```json\n{\"n\":1}\n```", "not valid JSON"},
		"a key twice":          {`{"n":1,"n":2}`, "occurs twice"},
		"the wrong type":       {`{"n":"x"}`, "got string, want integer"},
		"an unknown argument":  {`{"m":1}`, "additional properties 'm' not allowed"},
		"good":                 {`{"n":1}`, ""},
		"a number that is big": {`{"n":9007199254740993}`, ""},
		"null":                 {`null`, ""},
		"nothing":              {``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wires(t, func(t *testing.T, play func(...modeltest.Step) (*modeltest.Server, func(*session.Config))) {
				wire, change := play(modeltest.Step{Calls: []modeltest.Call{{ID: "a", Name: "where", Input: c.arguments}}}, modeltest.Step{Text: []string{"done"}})
				f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
				s := f.session(t.Context(), t)
				asked := false
				events := f.runTurn(t.Context(), t, &sessionv1.RunTurnRequest{Parent: s, Text: "go", ClientTools: []*sessionv1.ClientTool{tool}}, func(e *sessionv1.Event) {
					if w := e.GetTurnWaiting(); w != nil {
						asked = true
						if _, err := f.SubmitToolResult(t.Context(), &sessionv1.SubmitToolResultRequest{Parent: s, CallId: w.CallIds[0]}); err != nil {
							t.Error(err)
						}
					}
				})
				if end := finished(t, events); end.State != complete {
					t.Errorf("the turn ended %v", end)
				}
				got := fmt.Sprint(lastResults(f.messages(t.Context(), t, s)))
				if asked != (c.fault == "") || !strings.Contains(got, c.fault) || c.fault != "" && !strings.HasPrefix(got, "[ERROR: The call of where was not made: ") {
					t.Errorf("asked the client: %v, and the model was told %s", asked, got)
				}
				f.stillAnswers(t, s, wire)
			})
		})
	}
}

func TestFinishTakesTheSameArgumentsAsEveryTool(t *testing.T) {
	t.Parallel()
	wires(t, func(t *testing.T, play func(...modeltest.Step) (*modeltest.Server, func(*session.Config))) {
		finish := func(input string) modeltest.Step {
			return modeltest.Step{Calls: []modeltest.Call{{Name: "finish", Input: input}}}
		}
		cut := finish(`{"request_status":"COMPLETE","summary":"cut"}`)
		cut.StopReason = "max_tokens"
		first := finish(`{"request_status":"COMPLETE","summary":"too early"}`)
		first.StopReason, first.Calls = "max_tokens", append(first.Calls, modeltest.Call{Name: "Bash", Input: `{"command":"x"}`})
		wire, change := play(finish(`{"request_status":"COMPLETE","summary":"a","summary":"b"}`), cut, first, finish(`{"request_status":"COMPLETE","summary":"good"}`))
		f := start(t, "fallback: {steps: [{text: [unused]}]}", change, withSpec(func(s *agent.Spec) { s.Verdict = agent.VerdictTool }))
		s := f.session(t.Context(), t)
		events := f.turn(t.Context(), t, s, "go")
		if end := finished(t, events); end.State != complete || end.FinalText != "good" || end.Steps != 4 {
			t.Errorf("the turn ended %v", end)
		}
		if len(f.peers.executed) != 0 {
			t.Errorf("%d calls were executed", len(f.peers.executed))
		}
		f.stillAnswers(t, s, wire)
	})
}
