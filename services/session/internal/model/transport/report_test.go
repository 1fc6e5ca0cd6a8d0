package transport

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// TestEveryFormOfAnErrorIsReadWithItsWords has one row for each form in which
// servers tell an error, as the body of a status (0: inside a stream).
func TestEveryFormOfAnErrorIsReadWithItsWords(t *testing.T) {
	const m = "the words of the provider"
	tests := []struct {
		name, body string
		status     int
		kind       model.ErrorKind
		want       string
	}{
		{"an object", `{"error":{"message":"@@","type":"invalid_request_error","code":null}}`, 400, model.Refused, m},
		{"an object in a stream", `{"error":{"message":"@@","type":"invalid_request_error"}}`, 0, model.Refused, m},
		{"a text", `{"error":"@@"}`, 0, model.Unavailable, m},
		{"a text beside a code", `{"error":"@@","code":"401"}`, 0, model.Authentication, m},
		{"a list", `{"errors":[{"message":"@@","code":10000}],"success":false}`, 403, model.Authentication, m},
		{"an object in a list", `[{"error":{"code":400,"message":"@@","status":"INVALID_ARGUMENT"}}]`, 0, model.Refused, m},
		{"an object that is an error itself", `{"object":"error","message":"@@","type":"BadRequestError","param":null,"code":400}`, 0, model.Refused, m},
		{"the same with an object as message", `{"object":"error","message":{"detail":[{"type":"missing","loc":["body","messages",0],"msg":"@@"}]}}`, 422, model.Refused, "body.messages.0: " + m},
		{"without an envelope", `{"message":"@@","type":"invalid_request_error","code":"x"}`, 0, model.Refused, m},
		{"a capital letter", `{"Message":"@@"}`, 403, model.Authentication, m},
		{"a detail", `{"detail":"@@"}`, 500, model.Unavailable, m},
		{"a list of details", `{"detail":[{"loc":["body"],"msg":"@@","type":"extra_forbidden"}]}`, 422, model.Refused, "body: " + m},
		{"a problem", `{"type":"about:blank","title":"Bad Request","status":400,"detail":"@@","message":""}`, 400, model.Refused, m},
		{"a number as code", `{"error":{"message":"@@","code":401}}`, 0, model.Authentication, m},
		{"a number as text", `{"error":{"message":"@@","code":"402"}}`, 0, model.Billing, m},
		{"a word", `{"error":{"message":"@@","code":"insufficient_quota"}}`, 0, model.Billing, m},
		{"a word as type", `{"error":{"message":"@@","type":"insufficient_quota"}}`, 429, model.Billing, m},
		{"a word of another spelling", `{"error":{"message":"@@","code":"InvalidApiKey"}}`, 0, model.Authentication, m},
		{"an unknown model", `{"error":{"message":"@@","code":"model_not_found"}}`, 0, model.Refused, m},
		{"an unknown model in words", `{"error":"model 'x' not found, try pulling it first"}`, 0, model.Refused, "model 'x' not found"},
		{"a full context in words", `{"error":"@@: This model's maximum context length is 10 tokens"}`, 0, model.ContextFull, m},
		{"a quota in words", `{"error":"@@: you exceeded your current quota"}`, 0, model.Billing, m},
		{"a quota for a minute", `{"error":{"code":429,"message":"@@: You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}`, 429, model.Unavailable, m},
		{"a key in words", `{"error":"Invalid API key. @@"}`, 0, model.Authentication, m},
		{"an overload", `{"error":{"message":"@@","code":503}}`, 0, model.Unavailable, m},
		{"a limit of the rate", `{"error":{"message":"@@","code":"rate_limit_exceeded"}}`, 0, model.Unavailable, m},
		{"the API's own event", `{"type":"error","error":{"type":"overloaded_error","message":"@@"},"request_id":"r"}`, 0, model.Unavailable, m},
		{"an error inside another", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"@@\"}}","provider_name":"p"}}}`, 0, model.Refused, m},
		{"an error as text of another", `{"error":{"message":"{\"error\":{\"message\":\"@@\",\"code\":401}}"}}`, 0, model.Authentication, m},
		{"several messages", `{"error":{"message":["first","@@"],"type":"x"}}`, 400, model.Refused, "first; " + m},
		{"other names", `{"error_code":17,"error_msg":"@@"}`, 400, model.Refused, m},
		{"plain text", "@@\n", 500, model.Unavailable, m},
		{"plain text in a stream", "@@\n", 0, model.Unavailable, m},
		{"a JSON text", `"@@"`, 500, model.Unavailable, m},
		{"a web page", "<!DOCTYPE html><html><head><title>@@</title></head><body><p>x</p></body></html>", 502, model.Unavailable, m},
		{"a web page in a stream", "<html><h1>@@ &amp; more</h1></html>", 0, model.Refused, m + " & more"},
		{"a page without a title", "<html><body>@@</body></html>", 404, model.Refused, m},
		{"nothing", "", 500, model.Unavailable, ""},
		{"JSON that tells nothing", `{"a":1}`, 400, model.Refused, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, w := Begin(t.Context(), "fake", "sk-1", 0)
			defer w.End()
			e := w.Told(ReadError([]byte(strings.ReplaceAll(tt.body, "@@", m))), tt.status)
			if tt.kind == model.Authentication { // A message about a key may quote it.
				tt.want = ""
			}
			if e.Kind != tt.kind || e.Status != tt.status || !strings.Contains(e.Message, tt.want) {
				t.Errorf("got kind %d, %q; want kind %d and %q", e.Kind, e.Message, tt.kind, tt.want)
			}
			if tt.want == "" && strings.Contains(e.Message, ": ") {
				t.Errorf("got %q", e.Message)
			}
		})
	}
}

func TestOrdinaryPiecesAreNoErrors(t *testing.T) {
	for _, body := range []string{
		`{}`, `[]`, `null`, `7`, `{"error":null,"choices":[]}`, `{"error":"","choices":[]}`, `{"error":{},"choices":[]}`, `{"error":false,"choices":[]}`,
		`{"id":"x","object":"chat.completion.chunk","choices":[]}`, `{"type":"ping"}`, `{"id":"x","message":"hello"}`, `{"usage":{"prompt_tokens":1}}`,
		`{"type":"message_start","message":{"id":"m","type":"message","content":[]}}`,
	} {
		if told, ok := FindError([]byte(body)); ok {
			t.Errorf("%s is the error %+v", body, told)
		}
	}
}

func TestQuoteHidesWhatLooksLikeAKey(t *testing.T) {
	const key = "abcd-efgh-0123456789"
	for in, want := range map[string]string{
		"bad key " + key + "!":                        "bad key [key]!",
		"Incorrect API key provided: sk-proj-abc****": "Incorrect API key provided: [key]",
		"key ****6789 is wrong":                       "key [key] is wrong",
		"key (efgh-0123456789) is wrong":              "key ([key]) is wrong",
		"Authorization: Bearer xyz123":                "Authorization: [key]",
		"Bearer authentication is required":           "Bearer authentication is required",
		"the key is unknown":                          "the key is unknown",
		"\x1b[31mred\x1b[0m \x00 and\u2028\xffblue":   "[31mred[0m and \ufffdblue",
	} {
		if got := Quote(in, key); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestQuoteHidesEveryFormOfAKey has the configured key, parts of it, and secrets
// of others.
func TestQuoteHidesEveryFormOfAKey(t *testing.T) {
	const key = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
	for _, in := range []string{
		"bad `" + key + "`", "key=" + key + " is bad", "api-key:" + key, `{"k":"` + key + `"}`, `{"k":["x` + key + `x"]}`, "<" + key + ">", "‹" + key + ">",
		"https://h/v1?key=" + key[:30], "/v1?k=1&x=" + key[2:], "9f8e7d6c5b4a…c2b1a0", "9f8e...b1a0 is bad", "9f8e…", strings.ToUpper(key), key[:8] + ".", key[20:26],
		"ends " + key[4:12] + "/" + key[14:22], "9f8e\u200b7d6c" + key[8:],
		"ghp_9f8e7d6c5b4a39281706", "AKIA9F8E7D6C5B4A3928", "Basic OWY4ZTdkNmM1YjRh", "api-key=9f8e7d6c Authorization: Basic OWY4ZTdkNmM1YjRh",
		"github_pat_9f8e7d6c5b4a", "xoxb-9f8e7d6c5b4a", "https://user:9f8e7d6c5b4a@host/", `{"password": "9f8e7d"}`, "the token 9f8e7d6c5b4a is bad",
	} {
		for _, with := range []string{key, "another-0000"} {
			if with != key && !strings.ContainsAny(in, "?@") && !strings.Contains(in, "_") && !strings.Contains(in, "AKIA") && !strings.Contains(in, "asic ") && !strings.Contains(in, "passw") && !strings.Contains(in, "key=") {
				continue // Only its configuration tells that this is a key.
			}
			got := Quote(in, with)
			for _, part := range []string{"9f8e", "b1a0", "c2b1", "3928", "owy4", "5b4a", "e4d3", key[20:26]} {
				if strings.Contains(strings.ToLower(got), part) {
					t.Errorf("%q became %q, which has %q", in, got, part)
				}
			}
		}
	}
}

// TestQuoteKeepsTheWordsOfOrdinaryErrors has messages of providers without keys.
func TestQuoteKeepsTheWordsOfOrdinaryErrors(t *testing.T) {
	for _, s := range []string{
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.",
		"Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000, Used 29500, Requested 1200. Please try again in 1.4s.",
		"The model `claude-3-5-sonnet-20241022` does not exist or you do not have access to it.",
		"messages.1.content.0.tool_use_id: Field required", "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-haiku-20240307",
		"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
		"Invalid schema for function 'Bash': In context=(), object schema missing properties.", "Unexpected token '<' at position 0",
		"Unknown key: temperature", "You didn't provide an API key. Use an Authorization header with Bearer auth", "Bearer authentication is required",
		"Basic authentication is not supported", "unexpected token: end of input", "the secret ingredient of a token limit",
		"You exceeded your current quota, please check your plan and billing details. See https://platform.openai.com/docs/guides/error-codes/api-errors.",
		"Request req_011CSHoEeqs5C35K2UUqR7Fy failed", "Overloaded",
	} {
		if got := Quote(s, "9f8e7d6c5b4a39281706f5e4d3c2b1a0"); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestQuoteTakesAKeyThatIsNoUTF8(t *testing.T) {
	if got := Quote("bad abcdefgh", "abcdefgh\xff"); got != "bad [key]" {
		t.Errorf("got %q", got)
	}
}
