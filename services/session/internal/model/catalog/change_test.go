package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// oddIDs are ids of calls as servers send them; the fakes number their own where
// an id is empty.
var oddIDs = []string{"", "call_0", "call_0", "functions.LS:0", "has space", strings.Repeat("x", 64), "toolu_01", "call_t1_0_0", "é"}

// stepsOf plays turns of two steps: thinking, text and calls with odd ids, then text.
func stepsOf(name string, habits modeltest.Habits) modeltest.Script {
	n := 0
	return func(r modeltest.Request) modeltest.Step {
		if r.Step > 1 {
			return modeltest.Step{Thinking: "thought of " + name, Text: []string{"done"}, OpenAI: habits}
		}
		n++
		step := modeltest.Step{Thinking: "thought of " + name, Redacted: "c2VjcmV0", Text: []string{"look"}, OpenAI: habits}
		for i := range 3 {
			step.Calls = append(step.Calls, modeltest.Call{ID: oddIDs[(n+i)%len(oddIDs)], Name: "LS", Input: fmt.Sprintf(`{"n":%d}`, i)})
		}
		return step
	}
}

// TestAConversationMayChangeItsProviderWithEveryTurn goes from one provider to
// another and back, with thinking, parallel calls and odd ids in the history. The
// fakes enforce the rules of both APIs.
func TestAConversationMayChangeItsProviderWithEveryTurn(t *testing.T) {
	servers := map[string]*modeltest.Server{
		"claude": modeltest.Anthropic(t, stepsOf("claude", modeltest.Habits{})),
		"proxy":  modeltest.Anthropic(t, stepsOf("proxy", modeltest.Habits{})),
		"gpt":    modeltest.OpenAI(t, stepsOf("gpt", modeltest.Habits{SameIDs: true})),
		"local":  modeltest.OpenAI(t, stepsOf("local", modeltest.Habits{EmptyIDs: true, NoIndex: true, WholeCalls: true, Reasoning: "reasoning"})),
	}
	c := Config{Providers: map[string]Provider{}, Models: map[string]Limits{}}
	for name, s := range servers {
		kind := map[bool]string{true: KindOpenAI, false: KindAnthropic}[name == "gpt" || name == "local"]
		c.Providers[name] = Provider{Kind: kind, BaseURL: s.URL, Key: config.Secret(modeltest.Key)}
		c.Models[name+":m"] = Limits{ContextTokens: 1_000_000, MaxOutputTokens: 8000, ThinkingTokens: 2000}
	}
	cat, err := New(c, env())
	if err != nil {
		t.Fatal(err)
	}
	order := []string{"claude", "gpt", "claude", "local", "gpt", "proxy", "local", "claude"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 24 {
		order = append(order, []string{"claude", "proxy", "gpt", "local"}[random.IntN(4)])
	}
	var messages []*sessionv1.Message
	for turn, name := range order {
		messages = append(messages, streamtest.User(streamtest.Text(fmt.Sprintf("turn %d", turn))))
		for step := range 2 {
			messages = append(messages, ask(t, cat, name, messages, fmt.Sprintf("t%d.%d", turn, step))...)
		}
	}
	for name, s := range servers {
		if broken := s.Refused(); len(broken) > 0 {
			t.Errorf("%s: the rules were broken: %v", name, broken)
		}
		for _, r := range s.Requests() {
			body, err := json.Marshal(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			for other := range servers {
				if other != name && strings.Contains(string(body), "thought of "+other) {
					t.Errorf("%s was told what %s thought: %s", name, other, body)
				}
			}
			if r.Step == 2 && !strings.Contains(string(body), "thought of "+name) {
				t.Errorf("%s did not get back what it thought before its calls: %s", name, body)
			}
		}
	}
}

// ask makes one step and gives its message and that with the results.
func ask(t *testing.T, cat *Catalog, name string, messages []*sessionv1.Message, id string) []*sessionv1.Message {
	t.Helper()
	e, err := cat.Resolve(name + ":m")
	if err != nil {
		t.Fatal(err)
	}
	resp, _, err := streamtest.Play(t.Context(), t, e.Model, model.Request{
		Model: e.ModelName, System: "s", Messages: messages, Tools: []model.Tool{{Name: "LS"}}, ThinkingTokens: e.ThinkingTokens,
	})
	if err != nil {
		t.Fatalf("%s, step %s: %v", name, id, err)
	}
	out := []*sessionv1.Message{streamtest.Assistant(resp.Blocks...)}
	var results []*sessionv1.Block
	for _, b := range resp.Blocks {
		if u := b.GetToolUse(); u != nil {
			u.CallId = fmt.Sprintf("%s.%d", id, len(results))
			results = append(results, streamtest.Result(u.CallId, sessionv1.ToolOutcome_TOOL_OUTCOME_OK, "a file"))
		}
	}
	if len(results) > 0 {
		out = append(out, streamtest.User(results...))
	}
	return out
}
