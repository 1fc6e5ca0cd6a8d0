package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// withServer has the model be one of a Chat Completions server of its own habits.
func withServer(t *testing.T, limits catalog.Limits, reply func(body []byte) streamtest.Reply) func(*session.Config) {
	t.Helper()
	url := streamtest.Serve(t, reply)
	return func(c *session.Config) {
		c.Models.Providers["odd"] = catalog.Provider{Kind: "openai", BaseURL: url, NoKey: true}
		c.Models.Models = map[string]catalog.Limits{"odd:one": limits}
		c.Models.Model = "odd:one"
	}
}

// says is a whole answer.
func says(delta, finish, usage string) streamtest.Reply {
	return streamtest.Reply{Body: fmt.Sprintf("data: {\"id\":\"c\",\"choices\":[{\"delta\":%s,\"finish_reason\":%q}],\"usage\":%s}\n\ndata: [DONE]\n\n", delta, finish, usage)}
}

// warnings gives the reasons of the warnings in events.
func warnings(events []*sessionv1.Event) (all []string) {
	for _, e := range events {
		if w := e.GetWarning(); w != nil {
			all = append(all, w.Reason)
		}
	}
	return all
}

// TestAServerThatWantsItsReasoningBackGetsIt has a server that refuses a call
// without the reasoning that came before it.
func TestAServerThatWantsItsReasoningBackGetsIt(t *testing.T) {
	t.Parallel()
	f := start(t, "fallback: {steps: [{text: [unused]}]}", withServer(t, catalog.Limits{ContextTokens: 100_000}, func(body []byte) streamtest.Reply {
		var r struct {
			Messages []map[string]any `json:"messages"`
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return streamtest.Reply{Status: 400}
		}
		for _, m := range r.Messages {
			if m["tool_calls"] != nil && m["reasoning_content"] != "hm hm" {
				return streamtest.Reply{Status: 400, Body: `{"error":{"message":"reasoning_content is missing in an assistant message with tool_calls"}}`}
			}
		}
		if r.Messages[len(r.Messages)-1]["role"] == "tool" {
			return says(`{"reasoning_content":"so","content":"through"}`, "stop", "null")
		}
		return says(`{"reasoning_content":"hm hm","tool_calls":[{"index":0,"id":"c","function":{"name":"Bash","arguments":"{\"command\":\"ls\"}"}}]}`, "tool_calls", "null")
	}), withSpec(func(s *agent.Spec) { s.Tools = []string{"Bash"} }))
	s := f.session(t.Context(), t)
	for range 3 {
		events := f.turn(t.Context(), t, s, "go")
		if end := finished(t, events); end.State != complete || end.FinalText != "through" || warnings(events) != nil {
			t.Fatalf("the turn ended %v after %s", end, names(events))
		}
	}
}

// TestAnErrorInsideA200EndsTheTurnWithItsWords has errors that a repetition does
// not heal, and an answer without anything in it, which it does.
func TestAnErrorInsideA200EndsTheTurnWithItsWords(t *testing.T) {
	t.Parallel()
	for body, tt := range map[string]struct {
		reason string
		calls  int
	}{
		`{"error":{"message":"the words","code":"insufficient_quota"}}`:            {"MODEL_REQUEST_REFUSED", 1},
		"data: {\"error\":{\"message\":\"the words\",\"code\":401}}\n\n":           {"MODEL_AUTHENTICATION", 1},
		"data: {\"object\":\"error\",\"message\":\"the words\",\"code\":400}\n\n":  {"MODEL_REQUEST_REFUSED", 1},
		"<html><title>the words</title></html>":                                    {"MODEL_REQUEST_REFUSED", 1},
		"data: {\"error\":{\"message\":\"the words\",\"type\":\"not_found\"}}\n\n": {"MODEL_REQUEST_REFUSED", 1},
		"data: [DONE]\n\n": {"", 2},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			n := 0
			f := start(t, "fallback: {steps: [{text: [unused]}]}", withServer(t, catalog.Limits{}, func([]byte) streamtest.Reply {
				if n++; n == 1 {
					return streamtest.Reply{Body: body}
				}
				return says(`{"content":"well"}`, "stop", "null")
			}))
			s := f.session(t.Context(), t)
			end := finished(t, f.turn(t.Context(), t, s, "go"))
			quoted := tt.calls == 1 && tt.reason != "MODEL_AUTHENTICATION" // An error about the key could quote it.
			if end.Error.GetReason() != tt.reason || n != tt.calls || strings.Contains(end.Error.GetMessage(), "the words") != quoted {
				t.Errorf("after %d calls the turn ended %v", n, end)
			}
			if end := finished(t, f.turn(t.Context(), t, s, "and now?")); end.State != complete || end.FinalText != "well" {
				t.Errorf("the next turn ended %v", end)
			}
		})
	}
}

// TestAUsageThatCannotBeIsNotCounted has a server that tells a usage of two
// quadrillion tokens, of which the cost is more than a number can hold.
func TestAUsageThatCannotBeIsNotCounted(t *testing.T) {
	t.Parallel()
	limits := catalog.Limits{ContextTokens: 100_000, MaxOutputTokens: 4000, Prices: catalog.Prices{Input: 10, Output: 50}}
	n := 0
	f := start(t, "fallback: {steps: [{text: [unused]}]}", withServer(t, limits, func([]byte) streamtest.Reply {
		if n++; n == 1 {
			return says(`{"content":"well"}`, "stop", `{"prompt_tokens":2000000000000000,"completion_tokens":2000000000000000}`)
		}
		return says(`{"content":"well"}`, "stop", `{"prompt_tokens":100,"completion_tokens":10}`)
	}), func(c *session.Config) { c.Budgets.Session.MaxCostUSD = 100 })
	s := f.session(t.Context(), t)
	events := f.turn(t.Context(), t, s, "go")
	end := finished(t, events)
	u := end.Usage
	if end.State != complete || len(warnings(events)) != 1 || warnings(events)[0] != "MODEL_ANSWER" || u.InputTokens > 10_000 || u.OutputTokens > 10 || u.CostNanoUsd <= 0 || u.CostNanoUsd > 1e9 {
		t.Errorf("the turn ended %v with the warnings %v", end, warnings(events))
	}
	events = f.turn(t.Context(), t, s, "and now?")
	if end := finished(t, events); end.State != complete || end.Usage.InputTokens != 100 || warnings(events) != nil {
		t.Errorf("the next turn ended %v after %s", end, names(events))
	}
	for _, b := range f.budgets(t.Context(), t, s) {
		if b.UsedCostNanoUsd < 0 || b.UsedCostNanoUsd > 10e9 {
			t.Errorf("the budget is %v", b)
		}
	}
}
