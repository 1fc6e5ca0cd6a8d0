package responses

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/option"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// accumulate reads an answer to a request with the SDK's reader and accumulator.
func accumulate(t *testing.T, url string, body []byte) (*sdk.Response, sdk.ResponseAccumulatorSnapshot) {
	t.Helper()
	service := sdk.NewResponseService(option.WithBaseURL(url), option.WithAPIKey(modeltest.Key), option.WithMaxRetries(0))
	stream := service.NewStreaming(t.Context(), sdk.ResponseNewParams{}, option.WithRequestBody("application/json", body))
	var acc sdk.ResponseAccumulator
	for stream.Next() {
		var ev sdk.ResponsesServerEventUnion
		raw := stream.Current().RawJSON()
		if err := json.Unmarshal([]byte(raw), &ev); err != nil {
			t.Fatal(err, raw)
		}
		if err := acc.AddEvent(ev); err != nil {
			t.Fatal(err, raw)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	resp, err := acc.ReconstructedResponse()
	if err != nil {
		t.Fatal(err)
	}
	return resp, acc.Snapshot()
}

// theirs writes the SDK's response down like shape.
func theirs(t *testing.T, r *sdk.Response) (out []string) {
	t.Helper()
	for _, it := range r.Output {
		switch it := it.AsAny().(type) {
		case sdk.ResponseReasoningItem:
			var s strings.Builder
			for _, p := range it.Summary {
				s.WriteString(p.Text)
			}
			out = append(out, "thinking "+s.String())
		case sdk.ResponseOutputMessage:
			var s strings.Builder
			for _, p := range it.Content {
				s.WriteString(p.Text + p.Refusal)
			}
			out = append(out, "text "+s.String())
		case sdk.ResponseFunctionToolCall:
			out = append(out, "call "+it.Name+" "+it.Arguments+" "+it.CallID)
		default:
			t.Errorf("an item of type %T", it)
		}
	}
	return out
}

// TestAnswersAreThoseOfTheSDK compares answers, their usage and their reasoning with
// what the SDK makes of the same streams.
func TestAnswersAreThoseOfTheSDK(t *testing.T) {
	calls := []modeltest.Call{{ID: "call_a", Name: "Bash", Input: `{"command":"ls -la /"}`}, {ID: "call_b", Name: "LS", Input: `{"path":"/"}`}}
	usage := modeltest.Usage{Input: 10, Output: 20, CacheRead: 30, Thinking: 5}
	for name, step := range map[string]modeltest.Step{
		"text":          {Text: []string{"a", "b\u2028", "\u00e9"}, Usage: usage},
		"everything":    {Thinking: "hm hm hm hm", Redacted: "x", Text: []string{"a"}, Phase: "commentary", Calls: calls, Usage: usage},
		"calls in turn": {Calls: calls, OpenAI: modeltest.Habits{Interleave: true}, Usage: usage},
		"a refusal":     {Text: []string{"no"}, OpenAI: modeltest.Habits{Refusal: true}, Usage: usage},
		"a cut answer":  {Text: []string{"a"}, StopReason: "max_tokens", Usage: usage},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Responses(t, modeltest.Sequence(step))
			m := newModel(s)
			ours, streamed, err := streamtest.Play(t.Context(), t, m, ask("hi"))
			if err != nil {
				t.Fatal(err)
			}
			in, err := m.write(ask("hi"), 0)
			if err != nil {
				t.Fatal(err)
			}
			resp, snapshot := accumulate(t, s.URL, in.buf)
			if diff := cmp.Diff(theirs(t, resp), shape(ours.Blocks)); diff != "" {
				t.Error(diff)
			}
			if !step.OpenAI.Refusal && snapshot.OutputText() != streamed {
				t.Errorf("we streamed %q, the SDK %q", streamed, snapshot.OutputText())
			}
			u := ours.Usage
			got := []int64{u.GetInputTokens() + u.GetCacheReadTokens(), u.GetCacheReadTokens(), u.GetOutputTokens(), u.GetThinkingTokens()}
			want := []int64{resp.Usage.InputTokens, resp.Usage.InputTokensDetails.CachedTokens, resp.Usage.OutputTokens, resp.Usage.OutputTokensDetails.ReasoningTokens}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRequestsAreOnesOfTheSDK reads a request with the SDK's types and writes it again.
func TestRequestsAreOnesOfTheSDK(t *testing.T) {
	s := modeltest.Responses(t, thinks)
	m := newModel(s, func(c *Config) { c.ReasoningEffort = "low" })
	c := &talk{t: t}
	c.turn(m, "a")
	c.messages = append(c.messages[:3], streamtest.User(streamtest.Result("t1.1", ok, "image"), streamtest.Image(), streamtest.Document("application/pdf", "%PDF")))
	c.messages[1].Blocks = append(c.messages[1].Blocks, streamtest.Use("t1.1", "", "LS", "{}"))
	r := model.Request{
		Model: "a", System: "be \"brief\"\n\x01\u2028\xff", Messages: c.messages, ThinkingTokens: 1,
		Tools: []model.Tool{{Name: "LS", Description: "lists", InputSchema: []byte(`{"type":"object","properties":{"z":{"type":"number","maximum":12345678901234567890},"a":{}}}`)}},
	}
	in, err := m.write(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	var p sdk.ResponseNewParams
	if err := json.Unmarshal(in.buf, &p); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if json.Unmarshal(in.buf, &want) != nil || json.Unmarshal(again, &got) != nil {
		t.Fatalf("not JSON: %s", in.buf)
	}
	delete(want, "stream") // which the SDK's types leave to its method
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	kinds := map[string]int{}
	for i, it := range p.Input.OfInputItemList {
		switch {
		case it.OfMessage != nil, it.OfInputMessage != nil, it.OfOutputMessage != nil:
			kinds["message"]++
		case it.OfReasoning != nil:
			kinds["reasoning"]++
		case it.OfFunctionCall != nil:
			kinds["call"]++
		case it.OfFunctionCallOutput != nil:
			kinds["output"]++
		default:
			t.Errorf("the SDK does not know item %d", i)
		}
	}
	if diff := cmp.Diff(map[string]int{"message": 3, "reasoning": 2, "call": 2, "output": 2}, kinds); diff != "" {
		t.Errorf("%s\n%s", diff, in.buf)
	}
	if _, _, err := streamtest.Play(t.Context(), t, m, r); err != nil || s.Refused() != nil {
		t.Error(err, s.Refused())
	}
	if len(in.sent) != len(p.Input.OfInputItemList) || len(in.sent[len(in.sent)-1]) != 2 {
		t.Errorf("the blocks of %d items are known: %v", len(in.sent), in.sent)
	}
}
