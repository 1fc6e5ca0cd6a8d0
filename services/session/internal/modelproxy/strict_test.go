package modelproxy_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// strictOf returns whether the first tool and the answer's JSON schema are strict in a request to a provider.
func strictOf(body map[string]any) (tool, schema any) {
	t, _ := body["tools"].([]any)[0].(map[string]any)
	if f, ok := t["function"].(map[string]any); ok {
		t = f
	}
	f, _ := body["response_format"].(map[string]any)
	f, _ = f["json_schema"].(map[string]any)
	if text, ok := body["text"].(map[string]any); ok {
		f, _ = text["format"].(map[string]any)
	}
	return t["strict"], f["strict"]
}

// Each API gives the strictness of a tool to each other one.
func TestStrictToolsStayStrict(t *testing.T) {
	const schema = `{"type":"object","properties":{},"required":[],"additionalProperties":false}`
	requests := map[string]string{
		"/v1/messages":                `{"model":"%s","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":` + schema + `%t}]}`,
		"/openai/v1/chat/completions": `{"model":"%s","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `%t}}]}`,
		"/openai/v1/responses":        `{"model":"%s","input":"hi","tools":[{"type":"function","name":"f","parameters":` + schema + `%t}]}`,
	}
	for _, c := range []struct{ path, model string }{
		{"/v1/messages", "openai:gpt-5.5"},
		{"/v1/messages", "resp:gpt-5.5"},
		{"/openai/v1/chat/completions", "anthropic:claude-sonnet-4-6"},
		{"/openai/v1/chat/completions", "resp:gpt-5.5"},
		{"/openai/v1/responses", "anthropic:claude-sonnet-4-6"},
		{"/openai/v1/responses", "openai:gpt-5.5"},
	} {
		w := newWorld(t, setting{script: answers()})
		for given, strict := range map[string]bool{`,"strict":true`: true, `,"strict":false`: false, `,"strict":null`: false, ``: false} {
			a := w.post(c.path, strings.Replace(body(requests[c.path], c.model), "%t", given, 1))
			if a.code != http.StatusOK {
				t.Fatalf("%s to %s with %s: %d %s", c.path, c.model, given, a.code, a.body)
			}
			sent := slices.Concat(w.anthropic.Requests(), w.openai.Requests(), w.responses.Requests())
			var want any // the default of the other APIs is false
			if strict || strings.HasPrefix(c.model, "resp:") {
				want = strict
			}
			if got, _ := strictOf(sent[len(sent)-1].Body); got != want {
				t.Errorf("%s to %s with %s: the provider got strict %v, want %v", c.path, c.model, given, got, want)
			}
		}
		if a := w.post(c.path, strings.Replace(body(requests[c.path], c.model), "%t", `,"strict":"yes"`, 1)); a.code != http.StatusBadRequest || !strings.Contains(a.body, "strict: it cannot be string") {
			t.Errorf("%s: %d %s", c.path, a.code, a.body)
		}
	}
}

// A strict tool without a schema takes no arguments: providers refuse an open schema there.
func TestAStrictToolWithoutASchemaTakesNothing(t *testing.T) {
	for _, model := range []string{"anthropic:claude-sonnet-4-6", "openai:gpt-5.5"} {
		w := newWorld(t, setting{script: answers()})
		w.post("/openai/v1/responses", body(`{"model":"%s","input":"hi","tools":[{"type":"function","name":"f","strict":true}]}`, model))
		sent := slices.Concat(w.anthropic.Requests(), w.openai.Requests())
		if b, _ := json.Marshal(sent[0].Body["tools"]); !strings.Contains(string(b), `"additionalProperties":false`) {
			t.Errorf("%s: the provider got %s", model, b)
		}
	}
}

// OpenAI's two APIs give the name, the description and the strictness of an answer's schema to each other.
func TestTheSchemaOfAnAnswerStaysWhole(t *testing.T) {
	const format = `"name":"city","description":"a city","strict":true,"schema":{"type":"object"}`
	for _, c := range []struct{ path, body, model string }{
		{"/openai/v1/chat/completions", `{"model":"%s","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{` + format + `}}}`, "resp:gpt-5.5"},
		{"/openai/v1/responses", `{"model":"%s","input":"hi","text":{"format":{"type":"json_schema",` + format + `}}}`, "openai:gpt-5.5"},
	} {
		w := newWorld(t, setting{script: answers()})
		if a := w.post(c.path, body(c.body, c.model)); a.code != http.StatusOK {
			t.Fatalf("%s: %d %s", c.path, a.code, a.body)
		}
		sent := slices.Concat(w.openai.Requests(), w.responses.Requests())
		for _, field := range []string{`"name":"city"`, `"description":"a city"`, `"strict":true`} {
			if !strings.Contains(string(sent[0].Raw), field) {
				t.Errorf("%s: the provider got %s without %s", c.path, sent[0].Raw, field)
			}
		}
		w = newWorld(t, setting{script: answers()})
		a := w.post(c.path, body(c.body, "anthropic:claude-sonnet-4-6"))
		if a.code != http.StatusOK || !strings.Contains(string(w.anthropic.Requests()[0].Raw), `"description":"a city"`) {
			t.Errorf("%s: %d %s", c.path, a.code, a.body)
		}
	}
}
