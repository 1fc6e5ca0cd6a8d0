package modelproxy_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// named is a world with a model in modes, one with sampling, and a tenant's own names.
func named(t *testing.T) *world {
	half := 0.5
	return newWorld(t, setting{
		script: answers(),
		models: map[string]catalog.Limits{
			"anthropic:claude-sonnet-4-6": {MaxOutputTokens: 64000, Modes: map[string]catalog.Mode{
				"short": {MaxOutputTokens: 9000}, "deep": {Thinking: "adaptive", ThinkingTokens: 9000},
			}},
			"anthropic:warm": {MaxOutputTokens: 4000, Temperature: "0.3", TopP: "0.9"},
			"openai:gpt-5.5": {ReasoningEffort: "low", Temperature: "0.2"},
			"resp:gpt-5.5":   {ReasoningEffort: "low"},
		},
		own: map[string]catalog.OwnEntry{
			"tenant:quick": {Target: "anthropic:claude-sonnet-4-6", MaxOutputTokens: 1200, Temperature: &half},
			"tenant:deep":  {Target: "anthropic:claude-sonnet-4-6:mode=thinking", ThinkingTokens: 2000},
			"tenant:gone":  {Target: "nowhere:m"},
			"tenant:chat":  {Target: "openai:gpt-5.5", MaxOutputTokens: 1200},
		},
	})
}

// What a name stands for reaches the provider, and what the client says itself counts.
func TestANameStandsForItsSettings(t *testing.T) {
	const messages, chat, responses = "/v1/messages", "/openai/v1/chat/completions", "/openai/v1/responses"
	const plain = `{"model":"%s","stream":true,"max_tokens":30000,"messages":[{"role":"user","content":"hi"}]}`
	with := func(form, fields string) string { return strings.Replace(form, "{", "{"+fields+",", 1) }
	budget := func(n float64) any { return map[string]any{"type": "enabled", "budget_tokens": n} }
	adaptive := map[string]any{"type": "adaptive", "display": "summarized"}
	for _, c := range []struct {
		name, path, form, model string
		want                    map[string]any // members of the provider's request; nil: it has none
	}{
		{"an own name", messages, plain, "tenant:quick", map[string]any{"model": "claude-sonnet-4-6", "max_tokens": 1200.0, "temperature": 0.5, "thinking": nil}},
		{"an own name, less asked for", messages, strings.Replace(plain, "30000", "7", 1), "tenant:quick", map[string]any{"max_tokens": 7.0}},
		{"an own name, sampling of the client", messages, with(plain, `"top_p":0.1`), "tenant:quick", map[string]any{"top_p": 0.1, "temperature": nil}},
		{"an own name of a mode", messages, plain, "tenant:deep", map[string]any{"thinking": budget(2000)}},
		{"an own name, too much thinking", messages, with(plain, `"thinking":{"type":"enabled","budget_tokens":5000}`), "tenant:deep", map[string]any{"thinking": budget(2000)}},
		{"an own name, no thinking", messages, with(plain, `"thinking":{"type":"disabled"}`), "tenant:deep", map[string]any{"thinking": map[string]any{"type": "disabled"}}},
		{"an own name, translated", chat, plain, "tenant:quick", map[string]any{"model": "claude-sonnet-4-6", "max_tokens": 1200.0, "temperature": 0.5}},
		{"an own name of another vendor", messages, plain, "tenant:chat", map[string]any{"model": "gpt-5.5", "temperature": 0.2, "reasoning_effort": "low"}},
		{"an own name without a bound", chat, chatBody, "tenant:chat", map[string]any{"max_completion_tokens": 1200.0}},
		{"a mode", messages, plain, "anthropic:claude-sonnet-4-6:mode=deep", map[string]any{"thinking": adaptive, "max_tokens": 30000.0}},
		{"a mode without its provider", messages, plain, "claude-sonnet-4-6:mode=short", map[string]any{"max_tokens": 9000.0, "thinking": budget(8000)}},
		{"a mode, translated", responses, respBody, "anthropic:claude-sonnet-4-6:mode=deep", map[string]any{"thinking": adaptive}},
		{"a mode, no thinking, translated", responses, with(respBody, `"reasoning":{"effort":"none"}`), "anthropic:claude-sonnet-4-6:mode=deep", map[string]any{"thinking": nil}},
		{"a model in no mode", messages, plain, "claude-sonnet-4-6", map[string]any{"thinking": nil, "max_tokens": 30000.0, "temperature": nil}},
		{"sampling", messages, plain, "anthropic:warm", map[string]any{"temperature": 0.3, "top_p": 0.9, "max_tokens": 30000.0}},
		{"sampling with thinking", messages, with(plain, `"thinking":{"type":"enabled","budget_tokens":5000}`), "anthropic:warm", map[string]any{"temperature": nil, "thinking": budget(5000)}},
		{"sampling of the client", messages, with(plain, `"temperature":1`), "anthropic:warm", map[string]any{"temperature": 1.0, "top_p": nil}},
		{"sampling, translated", responses, respBody, "anthropic:warm", map[string]any{"temperature": 0.3, "top_p": 0.9}},
		{"an effort", chat, plain, "gpt-5.5", map[string]any{"reasoning_effort": "low", "temperature": 0.2}},
		{"an effort of the client", chat, with(plain, `"reasoning_effort":"high"`), "gpt-5.5", map[string]any{"reasoning_effort": "high"}},
		{"an effort in Responses", responses, respBody, "resp:gpt-5.5", map[string]any{"reasoning": map[string]any{"effort": "low"}}},
		{"an effort beside the client's words", responses, with(respBody, `"reasoning":{"summary":"auto"}`), "resp:gpt-5.5", map[string]any{"reasoning": map[string]any{"effort": "low", "summary": "auto"}}},
		{"an effort of the client in Responses", responses, with(respBody, `"reasoning":{"effort":"high"}`), "resp:gpt-5.5", map[string]any{"reasoning": map[string]any{"effort": "high"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := named(t)
			if a := w.post(c.path, body(c.form, c.model)); a.code != http.StatusOK {
				t.Fatalf("%d %s", a.code, a.body)
			}
			sent := slices.Concat(w.anthropic.Requests(), w.openai.Requests(), w.responses.Requests())[0].Body
			for name, want := range c.want {
				if d := cmp.Diff(want, sent[name]); d != "" {
					t.Errorf("%s in %v: %s", name, sent, d)
				}
			}
		})
	}
}

func TestABadNameIsRefusedInTheFormOfTheAPI(t *testing.T) {
	w := named(t)
	for name, want := range map[string]string{
		"tenant:none":                 `there is no model \"tenant:none\" here; GET`,
		"tenant:gone":                 `the model \"tenant:gone\" cannot be used (target: `,
		"tenant:quick:mode=thinking":  `there is no model \"tenant:quick:mode=thinking\"`,
		"claude-sonnet-4-6:mode=wild": `there are deep, short, thinking)`,
	} {
		for path, form := range map[string]string{
			"/v1/messages": `{"type":"error","error":{"type":"not_found_error","message":"`, "/openai/v1/chat/completions": `"code":"model_not_found"`, "/openai/v1/responses": `"code":"model_not_found"`,
		} {
			a := w.post(path, body(chatBody, name))
			if a.code != http.StatusNotFound || !strings.Contains(a.body, want) || !strings.Contains(a.body, form) {
				t.Errorf("%s %s: %d %s, want %s", path, name, a.code, a.body, want)
			}
		}
	}
	w = newWorld(t, setting{script: answers(), lost: errors.New("the disk is full")})
	a := w.post("/v1/messages", body(messagesBody, "tenant:quick"))
	if a.code != http.StatusServiceUnavailable || strings.Contains(a.body, "disk") || a.header.Get("X-Should-Retry") != "true" {
		t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
}

// busy is a provider that is overloaded at first.
func busy(status int, kind string) modeltest.Script {
	return modeltest.Sequence(
		modeltest.Step{Status: status, ErrorType: kind, ErrorMessage: "not now"},
		modeltest.Step{Text: []string{"Hello"}, Usage: modeltest.Usage{Input: 10, Output: 5}},
	)
}

func TestFallbacksTakeThePlaceOfAModel(t *testing.T) {
	const first = "anthropic:claude-sonnet-5-5"
	for _, c := range []struct {
		name, path, form, model string
		script                  modeltest.Script
		fallbacks               []string
		code                    int
		asked                   []string // models of the fake providers, in order
	}{
		{"overloaded, passed on", "/v1/messages", messagesBody, first, busy(529, "overloaded_error"), []string{"anthropic:claude-haiku-4-5"}, 200, []string{"claude-sonnet-5-5", "claude-haiku-4-5"}},
		{"overloaded, translated", "/openai/v1/responses", respBody, first, busy(529, "overloaded_error"), []string{"anthropic:claude-haiku-4-5"}, 200, []string{"claude-sonnet-5-5", "claude-haiku-4-5"}},
		{"an own name", "/v1/messages", messagesBody, "tenant:own", busy(503, "api_error"), []string{"anthropic:claude-haiku-4-5"}, 200, []string{"claude-sonnet-5-5", "claude-haiku-4-5"}},
		{"out of reach, another wire", "/v1/messages", messagesBody, "gone:m", answers(), []string{"gone:n", "openai:gpt-5.5"}, 200, []string{"gpt-5.5"}},
		{"all of them", "/v1/messages", messagesBody, first, modeltest.Sequence(modeltest.Step{Status: 529, ErrorType: "overloaded_error", ErrorMessage: "not now"}),
			[]string{"anthropic:claude-haiku-4-5"}, 529, []string{"claude-sonnet-5-5", "claude-haiku-4-5"}},
		{"a refusal", "/v1/messages", messagesBody, first, busy(400, "invalid_request_error"), []string{"anthropic:claude-haiku-4-5"}, 400, []string{"claude-sonnet-5-5"}},
		{"an empty account", "/v1/messages", messagesBody, first, busy(402, "billing_error"), []string{"anthropic:claude-haiku-4-5"}, 402, []string{"claude-sonnet-5-5"}},
		{"no fallback", "/v1/messages", messagesBody, first, busy(529, "overloaded_error"), nil, 529, []string{"claude-sonnet-5-5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setting{
				script: c.script, budgets: userBudget(1_000_000),
				models: map[string]catalog.Limits{first: {Fallbacks: c.fallbacks}, "gone:m": {Fallbacks: c.fallbacks}, "gone:n": {}},
				own:    map[string]catalog.OwnEntry{"tenant:own": {Target: first}},
			})
			a := w.post(c.path, body(c.form, c.model))
			if a.code != c.code || (c.code == http.StatusOK) != strings.Contains(a.body, "Hello") || c.code != http.StatusOK && !strings.Contains(a.body, "not now") {
				t.Errorf("%d %s", a.code, a.body)
			}
			var asked []string
			for _, r := range slices.Concat(w.anthropic.Requests(), w.openai.Requests()) {
				asked = append(asked, r.Body["model"].(string))
			}
			if d := cmp.Diff(c.asked, asked); d != "" {
				t.Error(d)
			}
			if b := w.balance(); b.Reserved.Tokens != 0 || b.Used.Tokens > 20 || (b.Used.Tokens > 0) != (c.code == http.StatusOK) {
				t.Errorf("the budget has %+v", b)
			}
		})
	}
}

// An answer that has begun is never begun again with another model.
func TestNoFallbackTakesOverABegunAnswer(t *testing.T) {
	for path, form := range map[string]string{"/v1/messages": messagesBody, "/openai/v1/responses": respBody} {
		w := newWorld(t, setting{
			script: modeltest.Sequence(modeltest.Step{Text: []string{"Hello", "x"}, After: 1, Break: modeltest.Cut}),
			models: map[string]catalog.Limits{"anthropic:claude-sonnet-5-5": {Fallbacks: []string{"anthropic:claude-haiku-4-5"}}},
		})
		a := w.post(path, body(form, "anthropic:claude-sonnet-5-5"))
		if strings.Count(a.body, "Hello") < 1 || !strings.Contains(a.body, "event: error") || len(w.anthropic.Requests()) != 1 {
			t.Errorf("%d requests: %s", len(w.anthropic.Requests()), a.body)
		}
	}
}

// The headers in which the SDKs describe the client's machine stay here.
func TestTheClientsMachineIsNotDescribedToTheProvider(t *testing.T) {
	for path, form := range map[string]string{"/v1/messages": messagesBody, "/openai/v1/responses": respBody} {
		w := newWorld(t, setting{script: answers()})
		if a := w.post(path, body(form, "claude-sonnet-5-5"), "X-Stainless-OS", "Linux", "X-Stainless-Arch", "arm64", "X-Stainless-Retry-Count", "1", "X-Stainless-New", "x",
			"Cookie", "a=b", "X-Forwarded-For", "10.1.2.3", "Authorization", "Bearer fl_secret"); a.code != http.StatusOK {
			t.Fatalf("%d %s", a.code, a.body)
		}
		for name, values := range w.anthropic.Requests()[0].Header {
			if strings.HasPrefix(name, "X-Stainless-") || name == "Cookie" || strings.HasPrefix(name, "X-Forwarded-") || strings.Contains(strings.Join(values, " "), "fl_secret") {
				t.Errorf("%s: the provider got %s: %v", path, name, values)
			}
		}
	}
}

// A provider gets what its own API documents, and nothing of the other one.
func TestAProviderGetsTheParametersOfItsOwnAPI(t *testing.T) {
	for _, c := range []struct{ path, form, model, query string }{
		{"/v1/messages", messagesBody, "claude-sonnet-5-5", ""},
		{"/v1/messages?beta=true", messagesBody, "claude-sonnet-5-5", "beta=true"},
		{"/v1/messages?beta=true&key=fl_secret&beta=no", messagesBody, "claude-sonnet-5-5", "beta=true"},
		{"/v1/messages?beta=yes&x=/../../v1/files", messagesBody, "claude-sonnet-5-5", ""},
		{"/openai/v1/chat/completions?beta=true&api-version=1", chatBody, "gpt-5.5", ""},
		{"/openai/v1/responses?include=x&beta=true", respBody, "resp:gpt-5.5", ""},
		{"/openai/v1/chat/completions?beta=true", chatBody, "claude-sonnet-4-6", ""}, // translated
		{"/v1/messages?beta=true&x=1", messagesBody, "gpt-5.5", ""},                  // translated
	} {
		w := newWorld(t, setting{script: answers()})
		form := strings.NewReplacer(`,"x":1.50`, "", `,"unknown":{"kept":[1.50]}`, "").Replace(body(c.form, c.model))
		if a := w.post(c.path, form, "Anthropic-Beta", "b1", "Openai-Beta", "b2", "X-App", "cli", "X-Claude-Code-Session-Id", "s", "Openai-Organization", "org-client"); a.code != http.StatusOK {
			t.Fatalf("%s: %d %s", c.path, a.code, a.body)
		}
		own := slices.Concat(w.anthropic.Requests(), w.openai.Requests(), w.responses.Requests())[0]
		passed := strings.HasPrefix(c.path, "/v1") && strings.HasPrefix(c.model, "claude")
		h := own.Header
		foreign := h.Get("Openai-Beta") != "" == strings.Contains(c.path, "/v1/messages") && h.Get("Openai-Beta") != ""
		if own.Query != c.query || (h.Get("Anthropic-Beta") != "") != passed || (h.Get("X-App") != "") != passed || foreign || h.Get("Openai-Organization") != "" {
			t.Errorf("%s for %s: the provider got ?%s and %v", c.path, c.model, own.Query, h)
		}
	}
}

func TestATenantsOwnNamesAreListed(t *testing.T) {
	w := named(t)
	for path, want := range map[string][]string{
		"/openai/v1/models": {`"tenant:quick"`, `"tenant:chat"`, `"openai:gpt-5.5"`}, "/openai/v1/models/tenant:quick": {`"tenant:quick"`},
		"/anthropic/v1/models?limit=1000": {`"tenant:deep"`}, "/anthropic/v1/models/tenant:quick": {`"max_tokens":1200`},
	} {
		a := w.get(path)
		for _, s := range want {
			if a.code != http.StatusOK || !strings.Contains(a.body, s) || strings.Contains(a.body, "tenant:gone") {
				t.Errorf("%s: %d, %s is not in %s", path, a.code, s, a.body)
			}
		}
	}
}
