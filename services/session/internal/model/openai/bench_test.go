package openai

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
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

// BenchmarkFirstToken measures the time from the call of Stream to the first piece,
// with a server that answers at once.
func BenchmarkFirstToken(b *testing.B) {
	first := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n"
	for _, messages := range []int{1, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", messages), func(b *testing.B) {
			url := streamtest.Serve(b, func([]byte) streamtest.Reply { return streamtest.Reply{Body: first} })
			m := newChat(Config{Provider: "p", BaseURL: url, Key: "k", MaxOutputTokens: 8000})
			r := conversation(messages)
			came := errors.New("the first piece came")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Stream(b.Context(), r, func(model.Delta) error { return came }); !errors.Is(err, came) {
					b.Fatal(err)
				}
			}
		})
	}
}

// conversation returns a request with about so many messages: a tool loop.
func conversation(messages int) model.Request {
	r := model.Request{
		Model: "m", System: strings.Repeat("Be brief. ", 100),
		Tools:    []model.Tool{{Name: "Bash", Description: "runs a command", InputSchema: []byte(`{"type":"object","properties":{"command":{"type":"string"}}}`)}},
		Messages: []*sessionv1.Message{streamtest.User(streamtest.Text("hi"))},
	}
	for i := 1; i < messages; i += 2 {
		id := fmt.Sprintf("t.%d", i)
		r.Messages = append(r.Messages,
			streamtest.Assistant(streamtest.Text("I look"), streamtest.Use(id, "call_"+strconv.Itoa(i), "Bash", `{"command":"ls -la"}`)),
			streamtest.User(streamtest.Result(id, ok, strings.Repeat("a line of output\n", 20))))
	}
	return r
}
