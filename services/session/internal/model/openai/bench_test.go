package openai

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

func BenchmarkRead(b *testing.B) {
	chunk := `data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4.1","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	stream := replay(strings.Repeat(chunk, 1000) + "data: [DONE]\n\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stream.Stream(b.Context(), model.Request{}, func(model.Delta) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
