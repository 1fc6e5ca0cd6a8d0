package modelproxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

const (
	messagesBody = `{"model":"%s", "max_tokens": 2000,"stream":true , "messages":[{"role":"user","content":"hi \u00e9"}],"unknown":{"kept":[1.50]}}`
	respBody     = `{"model":"%s","stream":true, "store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"x":1.50}`
	chatBody     = `{"model":"%s","stream":true, "messages":[{"role":"user","content":"hi"}],"x":1.50}`
)

func body(form, model string) string { return strings.Replace(form, "%s", model, 1) }

// numbered is what differs between two answers of a fake provider.
var numbered = regexp.MustCompile(`(msg_|chatcmpl-|resp_|rs_|fc_)[0-9_]+`)

func unnumbered(s string) string { return numbered.ReplaceAllString(s, "$1") }

func answers() modeltest.Script {
	return modeltest.Sequence(modeltest.Step{
		Thinking: "hm", Text: []string{"Hello", " there"}, Calls: []modeltest.Call{{ID: "toolu_1", Name: "look", Input: `{"at":"the sky"}`}},
		Usage: modeltest.Usage{Input: 10, Output: 5, CacheRead: 3},
	})
}

func TestARequestIsPassedOnUnchanged(t *testing.T) {
	for _, c := range []struct{ path, form, model, own string }{
		{"/anthropic/v1/messages", messagesBody, "anthropic:claude-sonnet-5-5", "claude-sonnet-5-5"},
		{"/v1/messages", messagesBody, "claude-sonnet-5-5", "claude-sonnet-5-5"},
		{"/openai/v1/chat/completions", strings.Replace(chatBody, `"x"`, `"stream_options":{"include_usage":true},"x"`, 1), "openai:gpt-5.5", "gpt-5.5"},
		{"/openai/v1/responses", respBody, "resp:gpt-5.5", "gpt-5.5"},
	} {
		w := newWorld(t, setting{script: answers()})
		target, direct := w.anthropic, w.anthropic.URL+"/v1/messages"
		if strings.Contains(c.path, "openai") {
			target, direct = w.openai, w.openai.URL+"/chat/completions"
		}
		if strings.Contains(c.path, "responses") {
			target, direct = w.responses, w.responses.URL+"/responses"
		}
		got := w.post(c.path, body(c.form, c.model), "anthropic-beta", "b1,b2", "x-api-key", "fl_ours")
		want, err := post(t.Context(), direct, body(c.form, c.own), "anthropic-version", "2023-06-01", "x-api-key", modeltest.Key, "Authorization", "Bearer "+modeltest.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got.code != http.StatusOK || unnumbered(got.body) != unnumbered(want.body) || got.header.Get("Content-Type") != want.header.Get("Content-Type") {
			t.Fatalf("%s: %d %v\n%s\nwant\n%s", c.path, got.code, got.header, got.body, want.body)
		}
		sent := target.Requests()
		if !bytes.Equal(sent[0].Raw, sent[1].Raw) {
			t.Errorf("%s: the provider got %s, want %s", c.path, sent[0].Raw, sent[1].Raw)
		}
		if h := sent[0].Header; strings.Contains(h.Get("X-Api-Key")+h.Get("Authorization"), "fl_") {
			t.Errorf("%s: the provider got the client's key: %v", c.path, h)
		}
		if strings.Contains(c.path, "openai") && sent[0].Header.Get("Anthropic-Beta") != "" {
			t.Errorf("%s: the provider got %v", c.path, sent[0].Header)
		}
		if c.path == "/v1/messages" && sent[0].Header.Get("Anthropic-Beta") != "b1,b2" {
			t.Errorf("the provider got %v", sent[0].Header)
		}
		w.ended()
		if len(w.used) != 1 || w.used[0].InputTokens != 10 || w.used[0].CacheReadTokens != 3 || w.used[0].OutputTokens != 5 || w.used[0].CostNanoUsd == 0 && !strings.HasPrefix(c.model, "resp:") {
			t.Errorf("%s: used %v", c.path, w.used)
		}
	}
}

func TestUsageThatAClientDidNotAskForIsHidden(t *testing.T) {
	w := newWorld(t, setting{script: answers()})
	got := w.post("/openai/v1/chat/completions", body(chatBody, "gpt-5.5"))
	want, err := post(t.Context(), w.openai.URL+"/chat/completions", body(chatBody, "gpt-5.5"), "Authorization", "Bearer "+modeltest.Key)
	if err != nil {
		t.Fatal(err)
	}
	if unnumbered(got.body) != unnumbered(want.body) {
		t.Errorf("got\n%s\nwant\n%s", got.body, want.body)
	}
	w.ended()
	if len(w.used) != 1 || w.used[0].OutputTokens != 5 {
		t.Errorf("used %v", w.used)
	}
}

func TestCallsAreMeteredIntoBudgets(t *testing.T) {
	w := newWorld(t, setting{script: answers(), budgets: userBudget(3000)})
	if a := w.post("/v1/messages", body(messagesBody, "claude-sonnet-5-5")); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	if b := w.balance(); b.Used.Tokens != 18 || b.Reserved.Tokens != 0 {
		t.Errorf("the budget has %+v", b)
	}
	// The next call asks for more output than is left, and gets less.
	if a := w.post("/v1/messages", strings.Replace(body(messagesBody, "claude-sonnet-5-5"), "2000", "50000", 1)); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	sent := w.anthropic.Requests()
	if n, ok := sent[1].Body["max_tokens"].(float64); !ok || n >= 3000 || n < 1024 {
		t.Errorf("asked for %v tokens", sent[1].Body["max_tokens"])
	}
	w = newWorld(t, setting{script: answers(), budgets: userBudget(500)})
	a := w.post("/v1/messages", body(messagesBody, "claude-sonnet-5-5"))
	if a.code != http.StatusTooManyRequests || a.header.Get("X-Should-Retry") != "false" || !strings.Contains(a.body, `"rate_limit_error"`) || !strings.Contains(a.body, "The user ada has used 0 tokens of 500 tokens") {
		t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
	a = w.post("/openai/v1/chat/completions", body(chatBody, "gpt-5.5"))
	if a.code != http.StatusTooManyRequests || !strings.Contains(a.body, `"insufficient_quota"`) {
		t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
	if len(w.anthropic.Requests())+len(w.openai.Requests()) != 0 {
		t.Error("a provider was called")
	}
}

// A request that asks for several answers reserves all of them.
func TestNoRequestAsksForMoreThanItReserves(t *testing.T) {
	for _, c := range []struct {
		fields string
		budget int64
		most   map[string]float64 // that the provider may be asked for
	}{
		{`"n":4,"max_tokens":2000`, 6000, map[string]float64{"max_tokens": 1500}},
		{`"n":4,"max_completion_tokens":null,"max_tokens":2000`, 6000, map[string]float64{"max_tokens": 1500}},
		{`"max_tokens":5e4`, 6000, map[string]float64{"max_tokens": 6000}},
		{`"n":4,"max_tokens":2000`, 1 << 30, map[string]float64{"max_tokens": 2000}},
	} {
		w := newWorld(t, setting{script: answers(), budgets: userBudget(c.budget)})
		if a := w.post("/openai/v1/chat/completions", strings.Replace(body(chatBody, "gpt-5.5"), `"x":1.50`, c.fields, 1)); a.code != http.StatusOK {
			t.Fatalf("%s: %d %s", c.fields, a.code, a.body)
		}
		sent := w.openai.Requests()[0].Body
		for field, most := range c.most {
			if n, ok := sent[field].(float64); !ok || n > most || n < 1 {
				t.Errorf("%s: the provider is asked for %s %v, of at most %v", c.fields, field, sent[field], most)
			}
		}
	}
	w := newWorld(t, setting{script: answers(), budgets: userBudget(6000)})
	for _, n := range []string{"0", "129", "2.0", `"2"`, "9223372036854775807"} {
		a := w.post("/openai/v1/chat/completions", strings.Replace(body(chatBody, "gpt-5.5"), `"x"`, `"n":`+n+`,"x"`, 1))
		if a.code != http.StatusBadRequest || !strings.Contains(a.body, "n: it is a whole number from 1 to 128") {
			t.Errorf("n %s: %d %s", n, a.code, a.body)
		}
	}
	if len(w.openai.Requests()) != 0 {
		t.Error("the provider was called")
	}
}

func TestErrorsOfTheProviderAreThoseOfTheClient(t *testing.T) {
	w := newWorld(t, setting{budgets: userBudget(1_000_000), script: modeltest.Sequence(modeltest.Step{
		Status: 429, ErrorType: "rate_limit_error", ErrorMessage: "slow down",
		Header: map[string]string{"retry-after": "7", "x-should-retry": "true", "request-id": "req_up", "anthropic-ratelimit-tokens-remaining": "0", "set-cookie": "a=b"},
	})})
	a := w.post("/v1/messages", body(messagesBody, "claude-sonnet-5-5"))
	if a.code != 429 || !strings.Contains(a.body, "slow down") || a.header.Get("Retry-After") != "7" || a.header.Get("X-Should-Retry") != "true" ||
		a.header.Get("Request-Id") != "req_up" || a.header.Get("Anthropic-Ratelimit-Tokens-Remaining") != "0" || a.header.Get("Set-Cookie") != "" {
		t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
	if b := w.balance(); b.Used.Tokens != 0 || b.Reserved.Tokens != 0 {
		t.Errorf("a refused call cost %+v", b)
	}
}

func TestWhatIsWrongWithTheServerIsNoFaultOfTheClient(t *testing.T) {
	w := newWorld(t, setting{script: answers()})
	for model, want := range map[string]struct {
		code  int
		words string
	}{
		"wrong:m": {500, "refuses this server's key"},
		"gone:m":  {502, "could not be reached"},
		"none:m":  {404, `there is no model \"none:m\"`},
		"":        {400, "name the model"},
	} {
		a := w.post("/v1/messages", body(messagesBody, model))
		if a.code != want.code || !strings.Contains(a.body, want.words) || !strings.Contains(a.body, `"type":"error"`) || strings.Contains(a.body, "sk-wrong") {
			t.Errorf("%s: %d %s", model, a.code, a.body)
		}
	}
	if a := w.post("/openai/v1/chat/completions", body(chatBody, "empty:m")); a.code != 500 || !strings.Contains(a.body, "set NONE_SET") || a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %s", a.code, a.body)
	}
	for _, bad := range []string{``, `[]`, `{"model":"a","model":"b"}`} {
		if a := w.post("/v1/messages", bad); a.code != 400 || !strings.Contains(a.body, "invalid_request_error") {
			t.Errorf("%s: %d %s", bad, a.code, a.body)
		}
	}
	for path, want := range map[string]int{"/openai/v1/embeddings": 404, "/anthropic/v1/models": 405} {
		if a := w.post(path, `{}`); a.code != want {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}

func TestAnAnswerThatBreaksOffEndsWithAnError(t *testing.T) {
	w := newWorld(t, setting{budgets: userBudget(1_000_000), script: modeltest.Sequence(modeltest.Step{Text: []string{"Hello", " there"}, After: 1, Break: modeltest.Cut, Usage: modeltest.Usage{Input: 10, Output: 5}})})
	a := w.post("/v1/messages", body(messagesBody, "claude-sonnet-5-5"))
	if !strings.Contains(a.body, "Hello") || !strings.HasSuffix(a.body, "\n\n") || !strings.Contains(a.body, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"") {
		t.Errorf("%d %s", a.code, a.body)
	}
	if b := w.balance(); b.Used.Tokens < 2000 || b.Reserved.Tokens != 0 {
		t.Errorf("a broken call counts as %+v, want what was reserved", b)
	}
	w.ended()
	if len(w.used) != 0 {
		t.Errorf("used %v", w.used)
	}
}

func TestASilentProviderIsGivenUp(t *testing.T) {
	for after, want := range map[int]string{-1: "was silent for", 1: "was silent for"} {
		w := newWorld(t, setting{idle: 50 * time.Millisecond, script: modeltest.Sequence(modeltest.Step{Text: []string{"Hello", " there"}, After: after, Break: modeltest.Silent})})
		if a := w.post("/v1/messages", body(messagesBody, "claude-sonnet-5-5")); !strings.Contains(a.body, want) {
			t.Errorf("%d %s", a.code, a.body)
		}
	}
}

func TestTheProviderIsLeftAtOnceWithTheClient(t *testing.T) {
	left := make(chan struct{})
	w := newWorld(t, setting{budgets: userBudget(1_000_000), script: modeltest.Sequence(modeltest.Step{Text: []string{"Hello", " there"}, After: 1, Break: modeltest.Silent})})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(left)
		for len(w.anthropic.Requests()) == 0 {
			time.Sleep(time.Millisecond) //nolint:forbidigo // the server has no event for it
		}
		cancel()
	}()
	if _, err := post(ctx, w.url+"/v1/messages", body(messagesBody, "claude-sonnet-5-5")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-left
	deadline := time.Now().Add(10 * time.Second)
	for w.balance().Reserved != (store.Amount{}) { // it is settled when the call has ended
		if time.Now().After(deadline) {
			t.Fatal("the call did not end")
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // the ledger has no event for it
	}
}

// lingering is a provider that does not end the connection behind its answer.
func lingering(t *testing.T, target string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		a, err := post(r.Context(), target+r.URL.Path, string(raw), "anthropic-version", "2023-06-01", "x-api-key", r.Header.Get("X-Api-Key"))
		if err != nil {
			t.Error(err)
			return
		}
		w.Header().Set("Content-Type", a.header.Get("Content-Type"))
		_, _ = io.WriteString(w, a.body)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// A client that leaves behind the last event pays for what it has used, not for all that it could have used.
func TestAClientMayLeaveAtTheLastEvent(t *testing.T) {
	w := newWorld(t, setting{script: answers(), budgets: userBudget(1_000_000)})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/messages", strings.NewReader(body(messagesBody, "open:m")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := new(http.Client).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for last := false; !last && lines.Scan(); {
		last = lines.Text() == "event: message_stop"
	}
	leave()
	w.ended()
	if b := w.balance(); b.Used.Tokens != 18 || b.Reserved.Tokens != 0 {
		t.Errorf("the budget has %+v", b)
	}
}

func TestModelsAreListed(t *testing.T) {
	w := newWorld(t, setting{script: answers()})
	get := func(path string) map[string]any {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var v map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&v); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", path, resp.StatusCode, err)
		}
		return v
	}
	seen, after := 0, ""
	for {
		p := get("/anthropic/v1/models?limit=7&after_id=" + after)
		seen += len(p["data"].([]any))
		if p["has_more"] == false {
			break
		}
		after = p["last_id"].(string)
	}
	all := get("/openai/v1/models")["data"].([]any)
	if len(all) < 15 || seen != len(all) {
		t.Errorf("%d and %d models", seen, len(all))
	}
	if m := get("/openai/v1/models/gpt-5.5"); m["id"] != "openai:gpt-5.5" || m["object"] != "model" {
		t.Errorf("got %v", m)
	}
	if m := get("/v1/models/anthropic:claude-opus-5-5"); m["id"] != "anthropic:claude-opus-5-5" || m["type"] != "model" {
		t.Errorf("got %v", m)
	}
}
