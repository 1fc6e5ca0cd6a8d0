package modelapi_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
)

func TestPathsSayWhatIsAskedFor(t *testing.T) {
	for path, want := range map[string]modelapi.Route{
		"/anthropic/v1/messages":              {Operation: modelapi.Messages, Method: "POST", Pattern: "/anthropic/v1/messages"},
		"/anthropic/v1/messages/count_tokens": {Operation: modelapi.CountTokens, Method: "POST", Pattern: "/anthropic/v1/messages/count_tokens"},
		"/anthropic/sessions/s-1/v1/messages": {Operation: modelapi.Messages, Session: "sessions/s-1", Method: "POST", Pattern: "/anthropic/sessions/{session}/v1/messages"},
		"/openai/v1/responses":                {Form: modelapi.OpenAI, Operation: modelapi.Responses, Method: "POST", Pattern: "/openai/v1/responses"},
		"/openai/v1/chat/completions":         {Form: modelapi.OpenAI, Operation: modelapi.ChatCompletions, Method: "POST", Pattern: "/openai/v1/chat/completions"},
		"/openai/v1/models":                   {Form: modelapi.OpenAI, Operation: modelapi.ListModels, Method: "GET", Pattern: "/openai/v1/models"},
		"/anthropic/v1/models/a:b/c":          {Operation: modelapi.GetModel, Model: "a:b/c", Method: "GET", Pattern: "/anthropic/v1/models/{model}"},
		"/openai/v1/messages":                 {Form: modelapi.OpenAI, Method: "GET", Pattern: "/v1/messages"},
		"/anthropic/sessions/S/v1/messages":   {},
		"/anthropic/v1/":                      {},
		"/v1/messages":                        {},
	} {
		got, ok := modelapi.Match(path)
		if ok != (want.Method != "") {
			t.Errorf("%s: matched: %v", path, ok)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
}

func TestErrorsHaveTheFormOfTheAPI(t *testing.T) {
	for _, c := range []struct {
		form    modelapi.Form
		failure modelapi.Failure
		want    string
		retry   string
	}{
		{modelapi.Anthropic, modelapi.Failure{Status: 429, Message: "slow", Retry: modelapi.Never}, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"},"request_id":"r1"}`, "false"},
		{modelapi.Anthropic, modelapi.Failure{Status: 422, Message: "m"}, `{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r1"}`, "false"},
		{modelapi.Anthropic, modelapi.Failure{Status: 502, Message: "m", Retry: modelapi.Always}, `{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"r1"}`, "true"},
		{modelapi.OpenAI, modelapi.Failure{Status: 404, Message: "m", Code: "model_not_found"}, `{"error":{"code":"model_not_found","message":"m","param":null,"type":"invalid_request_error"}}`, "false"},
		{modelapi.OpenAI, modelapi.Failure{Status: 400, Message: "m", Param: "input"}, `{"error":{"code":null,"message":"m","param":"input","type":"invalid_request_error"}}`, "false"},
		{modelapi.OpenAI, modelapi.Failure{Status: 500, Message: "m"}, `{"error":{"code":null,"message":"m","param":null,"type":"server_error"}}`, ""},
	} {
		w := httptest.NewRecorder()
		c.failure.After = 1500 * time.Millisecond
		c.form.Write(w, c.failure, "r1")
		if w.Body.String() != c.want || w.Code != c.failure.Status || w.Header().Get("X-Should-Retry") != c.retry ||
			w.Header().Get("Retry-After") != "2" || w.Header().Get(c.form.RequestID()) != "r1" {
			t.Errorf("%d %v: %s, want %s", w.Code, w.Header(), w.Body, c.want)
		}
	}
}

// Claude Code asks again for more than a minute after a 401 without the header.
func TestErrorsSayWhetherAskingAgainHelps(t *testing.T) {
	for status, want := range map[int]string{
		400: "false", 401: "false", 402: "false", 403: "false", 404: "false", 405: "false", 408: "", 409: "", 413: "false", 415: "false",
		421: "false", 422: "false", 425: "", 429: "", 500: "", 501: "false", 502: "", 503: "", 504: "", modelapi.Overloaded: "",
	} {
		for _, form := range []modelapi.Form{modelapi.Anthropic, modelapi.OpenAI} {
			w := httptest.NewRecorder()
			form.Write(w, modelapi.Failure{Status: status, Message: "m"}, "r1")
			if got := w.Header().Get("X-Should-Retry"); got != want {
				t.Errorf("%v %d: X-Should-Retry is %q, want %q", form, status, got, want)
			}
		}
	}
}
