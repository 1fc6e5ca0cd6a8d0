package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	messages  = `{"model":"%m","max_tokens":2000,"stream":true,"messages":[{"role":"user","content":"the weather?"}]}`
	chat      = `{"model":"%m","stream":true,"messages":[{"role":"user","content":"the weather?"}]}`
	responses = `{"model":"%m","stream":true,"input":"the weather?"}`
)

func of(form, model string) string { return strings.Replace(form, "%m", model, 1) }

func TestEachWireReachesEachProvider(t *testing.T) {
	s := serve(t, "required", weather, nil)
	key := s.keys["ann"]
	for _, path := range []struct{ path, form, name, last string }{
		{"/anthropic/v1/messages", messages, "x-api-key", "event: message_stop\n"},
		{"/openai/v1/chat/completions", chat, "Authorization", "data: [DONE]\n"},
		{"/openai/v1/responses", responses, "Authorization", "event: response.completed\n"},
	} {
		for _, model := range []string{"anthropic:claude-sonnet-5-5", "openai:gpt-5.6-terra"} {
			value := key
			if path.name == "Authorization" {
				value = "Bearer " + key
			}
			a := s.call(t, http.MethodPost, path.path, of(path.form, model), path.name, value)
			if a.code != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") ||
				!strings.Contains(a.body, "Let me ") || !strings.Contains(a.body, `city`) || !strings.Contains(a.body, path.last) {
				t.Errorf("%s, %s: %d %v\n%s", path.path, model, a.code, a.header, a.body)
			}
		}
	}
	if refused := append(s.anthropic.Refused(), s.openai.Refused()...); len(refused) > 0 {
		t.Error(refused)
	}
	for _, r := range append(s.anthropic.Requests(), s.openai.Requests()...) {
		if strings.Contains(string(r.Raw), "fl_") || strings.Contains(r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"), "fl_") {
			t.Error("a provider got a key of ours")
		}
	}
}

func TestErrorsHaveTheFormOfTheAPI(t *testing.T) {
	s := serve(t, "required", weather, nil)
	for _, c := range []struct {
		path, body string
		header     []string
		code       int
		want       string
	}{
		{"/anthropic/v1/messages", of(messages, "gpt-5.5"), nil, 401, `{"type":"error","error":{"type":"authentication_error"`},
		{"/anthropic/v1/messages", of(messages, "gpt-5.5"), []string{"x-api-key", "fl_made_up"}, 401, `"authentication_error"`},
		{"/anthropic/v1/messages", of(messages, "gpt-5.5"), []string{"x-api-key", "none"}, 401, `"authentication_error"`},
		{"/openai/v1/responses", of(responses, "gpt-5.5"), nil, 401, `{"error":{"code":"invalid_api_key"`},
		{"/openai/v1/responses", of(responses, "x"), []string{"Authorization", "Bearer " + s.keys["ann"]}, 404, `"model_not_found"`},
		{"/anthropic/sessions/none/v1/messages", of(messages, "gpt-5.5"), []string{"x-api-key", s.keys["ann"]}, 404, `"not_found_error"`},
		{"/openai/v1/embeddings", `{}`, []string{"Authorization", "Bearer " + s.keys["ann"]}, 404, `"invalid_request_error"`},
		{"/anthropic/v1/messages", `{`, []string{"x-api-key", s.keys["ann"]}, 400, `"invalid_request_error"`},
		{"/anthropic/v1/messages", strings.Repeat(" ", 17<<20), []string{"x-api-key", s.keys["ann"]}, 413, `"request_too_large"`},
	} {
		a := s.call(t, http.MethodPost, c.path, c.body, c.header...)
		if a.code != c.code || !strings.Contains(a.body, c.want) || a.header.Get("Request-Id")+a.header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %v %s, want %s", c.path, a.code, a.header, a.body, c.want)
		}
	}
}

func TestAServerWithoutKeysTakesTheKeyNone(t *testing.T) {
	s := serve(t, "open", weather, nil)
	if a := s.call(t, http.MethodPost, "/openai/v1/chat/completions", of(chat, "claude-sonnet-5-5"), "Authorization", "Bearer none"); a.code != http.StatusOK {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := s.call(t, http.MethodGet, "/anthropic/v1/models", "", "x-api-key", "none"); a.code != http.StatusOK || !strings.Contains(a.body, `"openai:gpt-5.6-terra"`) {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := s.call(t, http.MethodPost, "/openai/v1/chat/completions", of(chat, "scripted:default")); a.code != http.StatusOK || !strings.Contains(a.body, "[DONE]") {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestASessionPaysWhereThePathNamesIt(t *testing.T) {
	s := serve(t, "required", weather, map[string]any{"budgets": map[string]any{"user": map[string]any{"max-tokens": 100_000}}})
	ann := []string{"x-api-key", s.keys["ann"]}
	made := s.call(t, http.MethodPost, "/v1/sessions?session_id=mine", `{"budget":{"maxTokens":4000}}`, ann[0], ann[1], "Content-Type", "application/json")
	if made.code != http.StatusOK {
		t.Fatalf("%d %s", made.code, made.body)
	}
	const path = "/anthropic/sessions/mine/v1/messages"
	if a := s.call(t, http.MethodPost, path, of(messages, "openai:gpt-5.6-terra"), ann...); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // a call is settled a moment after its answer
		a := s.call(t, http.MethodGet, "/v1/budgets?session=sessions/mine", "", ann...)
		if strings.Contains(strings.ReplaceAll(a.body, " ", ""), `"usedTokens":"57"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the session's budget: %d %s", a.code, a.body)
		}
	}
	if a := s.call(t, http.MethodPost, path, of(messages, "openai:gpt-5.6-terra"), "x-api-key", s.keys["bob"]); a.code != http.StatusNotFound || !strings.Contains(a.body, `"not_found_error"`) {
		t.Errorf("another user's session: %d %s", a.code, a.body)
	}
	big := strings.Replace(of(messages, "openai:gpt-5.6-terra"), "the weather?", strings.Repeat("long ", 1000), 1)
	if a := s.call(t, http.MethodPost, path, big, ann...); a.code != http.StatusTooManyRequests || !strings.Contains(a.body, "The session has used 57 tokens of 4000 tokens") || a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("beyond the budget: %d %v %s", a.code, a.header, a.body)
	}
}

func TestAClientThatLeavesEndsTheCall(t *testing.T) {
	left := make(chan struct{}, 2)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	}))
	t.Cleanup(slow.Close)
	s := serve(t, "open", weather, map[string]any{
		"providers": map[string]any{"slow": map[string]any{"kind": "anthropic", "base-url": slow.URL, "no-key": true}},
		"models":    map[string]any{"slow:m": map[string]any{"max-output-tokens": 1000}},
	})
	for path, body := range map[string]string{"/anthropic/v1/messages": of(messages, "slow:m"), "/openai/v1/responses": of(responses, "slow:m")} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		for got := ""; !strings.Contains(got, "Hello"); {
			b := make([]byte, 4096)
			n, err := resp.Body.Read(b)
			if err != nil {
				t.Fatalf("%s: %v after %q", path, err, got)
			}
			got += string(b[:n])
		}
		cancel()
		_ = resp.Body.Close()
		select {
		case <-left:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the provider is not left", path)
		}
	}
}
