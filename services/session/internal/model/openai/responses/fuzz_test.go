package responses

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model"

	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// replay is a model whose stream is the given bytes.
type replay string

func (r replay) Stream(ctx context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
	ctx, w := transport.Begin(ctx, "fuzz", "sk-of-the-fuzzer", 0)
	defer w.End()
	a := &answer{provider: "fuzz", model: "m", emit: emit, watch: w, sent: 400, limits: transport.Limits{Context: 1000, Output: 100}}
	return a.read(ctx, strings.NewReader(string(r)))
}

// FuzzStream checks that no stream of a server makes pieces interleave or miss in the
// answer, that its faults are errors, that an answer without a whole response is none,
// and that its usage is one that can be.
func FuzzStream(f *testing.F) {
	f.Add(whole)
	f.Add(events(added, piece, textEnd, itemEnd, callNew, callArgs, end))
	f.Add(events(`response.failed ,"response":{"error":{"code":"server_error","message":"m"}}`))
	f.Add(events(`error ,"code":"c","message":"m"`, "keepalive "))
	f.Add(events(`response.reasoning_summary_text.delta ,"output_index":1,"summary_index":1,"delta":"a"`, `response.reasoning_summary_text.delta ,"output_index":1,"summary_index":0,"delta":"b"`,
		`response.refusal.delta ,"output_index":0,"delta":"no"`, `response.output_item.done ,"output_index":1,"item":{"type":"reasoning","id":"r","encrypted_content":"e","summary":[{"text":"bc"},{"text":"a"}]}`,
		`response.incomplete ,"response":{"incomplete_details":{"reason":"content_filter"},"usage":{"input_tokens":2e15}}`))
	f.Add("data: [DONE]\n\n<html>")
	f.Fuzz(func(t *testing.T, stream string) {
		resp, _, err := streamtest.Play(t.Context(), t, replay(stream), model.Request{})
		var e *model.Error
		if err != nil {
			if !errors.As(err, &e) || e.Message == "" || strings.Contains(e.Message, "sk-of-the-fuzzer") {
				t.Errorf("the error is %T: %v", err, err)
			}
			return
		}
		if lower := strings.ToLower(stream); !strings.Contains(lower, "response") && !strings.Contains(lower, `\u00`) { // a key may be written in escapes
			t.Errorf("an answer without an end: %+v", resp)
		}
		streamtest.CheckUsage(t, resp, 400+len(stream)+10_000)
	})
}

func BenchmarkRead(b *testing.B) {
	chunk := events(`response.output_text.delta ,"sequence_number":4,"item_id":"m","output_index":0,"content_index":0,"delta":"Hello","logprobs":[]`)
	stream := replay(events(added) + strings.Repeat(chunk, 1000) + events(end))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stream.Stream(b.Context(), model.Request{}, func(model.Delta) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
