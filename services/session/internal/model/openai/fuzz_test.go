package openai

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// replay is a model whose stream is the given bytes.
type replay string

func (r replay) Stream(_ context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
	done := false
	body, err := io.ReadAll(newLines(io.NopCloser(strings.NewReader(string(r))), &done))
	if err != nil {
		return nil, err
	}
	a := answer{provider: "fuzz", emit: emit}
	for line := range strings.Lines(string(body)) {
		data := strings.TrimSpace(strings.TrimPrefix(line, "data:"))
		if data == "[DONE]" {
			break
		}
		if err := a.chunk([]byte(data)); err != nil {
			return nil, err
		}
	}
	return a.end(sdk.ChatCompletionRequest{})
}

// FuzzStream checks that no stream of a server makes pieces interleave or miss
// in the answer, and that its faults are errors.
func FuzzStream(f *testing.F) {
	f.Add(": hello\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\",\"reasoning\":\"b\"}}]}\n\ndata: [DONE]\n")
	f.Add(`data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"x","function":{"name":"n","arguments":"{}"}},{"index":0,"function":{"name":"m","arguments":"{"}}]}}]}` + "\n" +
		`data: {"choices":[{"delta":{"content":"late","tool_calls":[{"id":"x"},{"function":{"name":"m"}}]},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":5}}}`)
	f.Add(`data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"m"}}]}}]}` + "\n" + `data: {"choices":[{"delta":{"tool_calls":[{"id":"late"}]}}]}`)
	f.Add(`data: {"error":{"message":"m","code":7}}`)
	f.Fuzz(func(t *testing.T, stream string) {
		resp, _, err := streamtest.Play(t.Context(), t, replay(stream), model.Request{})
		var e *model.Error
		var told *toldError
		if err != nil && !errors.As(err, &e) && !errors.As(err, &told) {
			t.Errorf("the error is %T: %v", err, err)
		}
		if err == nil && (resp.StopReason == "" || resp.Usage.GetInputTokens() < 0) {
			t.Errorf("the answer is %+v", resp)
		}
	})
}
