package anthropic

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// play streams from a server that answers each request with the reply.
func play(t *testing.T, reply streamtest.Reply) (*model.Response, error) {
	t.Helper()
	m := Connect(Access{Provider: "odd", BaseURL: streamtest.Serve(t, func([]byte) streamtest.Reply { return reply }), Key: "k", Idle: time.Minute}).
		Model(Limits{MaxOutputTokens: 100, ContextTokens: 1000})
	resp, _, err := streamtest.Play(t.Context(), t, m, ask("hi"))
	return resp, err
}

// ending is one way in which a stream of events ends.
type ending struct {
	content, stop, usage  string
	message, stopped, cut bool // the message_start and message_stop come; the connection breaks
	eol                   string
	lean                  bool // no names of events, no spaces after colons
}

// stream writes the events of an answer.
func (e ending) stream() string {
	var b strings.Builder
	send := func(name, rest string) {
		data := `{"type":"` + name + `"` + rest + "}"
		if e.lean {
			b.WriteString("data:" + data + e.eol + e.eol)
			return
		}
		head, tail, _ := strings.Cut(data, ",")
		if tail != "" { // data of two lines
			head, tail = head+",", "data: "+tail+e.eol
		}
		b.WriteString(": hi" + e.eol + "event: " + name + e.eol + "data: " + head + e.eol + tail + e.eol)
	}
	first, last := "", ""
	switch e.usage {
	case "both":
		first, last = `{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":1}`, `{"output_tokens":9}`
	case "sums": // servers that tell all again, or zeros
		first, last = `{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":9}`, `{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":0}`
	case "last":
		first, last = "null", `{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":9}`
	}
	usage := func(u string) string {
		if u == "" {
			return ""
		}
		return `,"usage":` + u
	}
	send("message_start", `,"message":{"id":"m"`+usage(first)+"}")
	send("ping", "")
	send("news", `,"index":"x"`)
	switch e.content {
	case "text":
		send("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		send("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"é"}`)
	case "call", "open call":
		send("content_block_start", `,"index":0,"content_block":{"type":"tool_use","id":"x","name":"LS","input":{}}`)
		send("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}`)
	}
	if e.content == "text" || e.content == "call" {
		send("content_block_stop", `,"index":0`)
	}
	if e.message {
		stop := "null"
		if e.stop != "" {
			stop = `"` + e.stop + `"`
		}
		send("message_delta", `,"delta":{"stop_reason":`+stop+"}"+usage(last))
	}
	if e.stopped {
		send("message_stop", "")
	}
	return b.String()
}

// want is the stop reason that the answer must have; empty when it is not whole.
func (e ending) want() string {
	switch {
	case e.content == "open call", !e.message, e.stop == "":
		return ""
	case e.stop == "max_tokens":
		return "max_tokens"
	case e.content == "call":
		return "tool_use"
	}
	return "end_turn"
}

func TestTheLastUsageCounts(t *testing.T) {
	body := `data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":900,"cache_read_input_tokens":80,"output_tokens":500}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}` + "\n\n" +
		`data: {"type":"content_block_stop","index":0}` + "\n\n" +
		`data: {"type":"message_delta","delta":{},"usage":{"input_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":9}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0}}` + "\n\n" +
		`data: {"type":"message_stop"}` + "\n\n"
	resp, err := play(t, streamtest.Reply{Body: body})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&sessionv1.Usage{InputTokens: 7, CacheReadTokens: 3, CacheWriteTokens: 2, OutputTokens: 9}, resp.Usage, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// TestHowStreamsEnd goes through all combinations of content, stop reason, usage,
// message_stop, a broken connection, line ends and framing.
func TestHowStreamsEnd(t *testing.T) {
	var e ending
	n := 0
	for _, e.content = range []string{"", "text", "call", "open call"} {
		for _, e.stop = range []string{"", "end_turn", "tool_use", "max_tokens"} {
			for _, e.usage = range []string{"", "both", "sums", "last"} {
				for _, e.eol = range []string{"\n", "\r\n", "\r"} {
					for bits := range 16 {
						e.message, e.stopped, e.cut, e.lean = bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0
						n++
						if n%7 > 0 && testing.Short() {
							continue // make prove runs all of them
						}
						t.Run(fmt.Sprintf("%+v", e), func(t *testing.T) { e.check(t, []int{0, 1, 7}[n%3]) })
					}
				}
			}
		}
	}
}

func (e ending) check(t *testing.T, piece int) {
	resp, err := play(t, streamtest.Reply{Body: e.stream(), Cut: e.cut, Piece: piece})
	if e.want() == "" {
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Kind != model.Unavailable {
			t.Fatalf("got %v, %v; want a stream that may be tried again", resp, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if resp.StopReason != e.want() || (len(resp.Blocks) == 0) != (e.content == "") {
		t.Errorf("got %+v, want it to stop for %s", resp, e.want())
	}
	want := &sessionv1.Usage{InputTokens: 7, CacheReadTokens: 3, OutputTokens: 9}
	if e.usage == "" {
		want = &sessionv1.Usage{InputTokens: resp.Usage.GetInputTokens(), OutputTokens: map[string]int64{"text": 1, "call": 1}[e.content]}
	}
	if diff := cmp.Diff(want, resp.Usage, protocmp.Transform()); diff != "" || resp.Usage.GetInputTokens() == 0 || resp.Warning != "" {
		t.Errorf("usage: %s%s", diff, resp.Warning)
	}
}

// TestAServerThatStaysAfterTheStopReasonIsNotWaitedFor has a server that sends
// neither message_stop nor an end.
func TestAServerThatStaysAfterTheStopReasonIsNotWaitedFor(t *testing.T) {
	resp, err := play(t, streamtest.Reply{Body: ending{content: "text", stop: "end_turn", message: true, eol: "\n"}.stream(), Stay: true})
	if err != nil || resp.StopReason != "end_turn" {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestAWholeAnswerInPlaceOfAStreamIsRead(t *testing.T) {
	body := `{"id": "m", "type": "message", "role": "assistant",
		"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "hi"},
			{"type": "tool_use", "id": "x", "name": "LS", "input": {"path": "/"}}, {"type": "tool_use", "id": "y", "name": "LS", "input": {}}],
		"stop_reason": "end_turn", "usage": {"input_tokens": 7, "output_tokens": 9}}`
	for _, kind := range []string{"application/json", "text/event-stream"} {
		resp, err := play(t, streamtest.Reply{Type: kind, Body: body, Piece: 9})
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Blocks) != 4 || resp.StopReason != "tool_use" || resp.Usage.OutputTokens != 9 || resp.Blocks[2].GetToolUse().ArgumentsJson != `{"path": "/"}` {
			t.Errorf("got %+v", resp)
		}
		if resp, err := play(t, streamtest.Reply{Type: kind, Body: body[:len(body)-1]}); err == nil {
			t.Errorf("half a body is the answer %+v", resp)
		}
	}
}

// TestAnErrorInsideA200IsToldWithItsWords has the forms in which servers tell an
// error in place of an answer, and midway.
func TestAnErrorInsideA200IsToldWithItsWords(t *testing.T) {
	const m = "the words of the provider"
	midway := ending{content: "open call", eol: "\n"}.stream()
	tests := []struct {
		kind string
		body string
		want model.ErrorKind
		said string
	}{
		{"text/event-stream", "", model.Unavailable, "broke off"},
		{"text/event-stream", "data: [DONE]\n\n", model.Unavailable, "broke off"},
		{"application/json", `{"type":"error","error":{"type":"billing_error","message":"@"}}`, model.Billing, m},
		{"text/event-stream", `{"error":{"message":"@","code":"insufficient_quota"}}`, model.Billing, m},
		{"text/event-stream", `data: {"error":"@","code":401}` + "\n\n", model.Authentication, "refused the key"},
		{"text/event-stream", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"@\"}}\n\n", model.Unavailable, m},
		{"text/event-stream", midway + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"@\"}}\n\n", model.Refused, m},
		{"text/event-stream", midway + "data: {\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"@\"}}\n\n", model.Refused, m},
		{"text/event-stream", midway + "event: error\ndata: @\n\n", model.Unavailable, m},
		{"text/event-stream", midway + "event: error\n\n", model.Unavailable, "not available"},
		{"text/event-stream", "<html><head><title>@</title></head>", model.Refused, "web page; check its base URL: " + m},
		{"text/plain", "@", model.Unavailable, m},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.body, func(t *testing.T) {
			_, err := play(t, streamtest.Reply{Type: tt.kind, Body: strings.ReplaceAll(tt.body, "@", m)})
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Kind != tt.want || !strings.Contains(failed.Message, tt.said) {
				t.Errorf("got %v, want kind %d and %q", err, tt.want, tt.said)
			}
		})
	}
	for status, body := range map[int]string{422: `{"detail":[{"msg":"the words"}]}`, 500: "the words", 404: "<html><h1>the words</h1>"} {
		_, err := play(t, streamtest.Reply{Status: status, Type: "text/plain", Body: body})
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Status != status || !strings.HasSuffix(failed.Message, ": the words") {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

func TestUsageThatCannotBeIsEstimated(t *testing.T) {
	for in, tt := range map[string]struct {
		output int64
		doubt  bool
	}{
		`{"input_tokens":2000000000000000,"output_tokens":2000000000000000}`:                                                    {1, true},
		`{"input_tokens":1,"cache_read_input_tokens":9223372036854775807,"cache_creation_input_tokens":5,"output_tokens":"12"}`: {12, true},
		`{"input_tokens":-1,"output_tokens":-7}`:                                                                                {1, false},
		`{"input_tokens":{},"output_tokens":7}`:                                                                                 {7, false},
		`[]`:                                                                                                                    {1, false},
	} {
		e := ending{content: "text", stop: "end_turn", message: true, stopped: true, usage: "both", eol: "\n"}
		resp, err := play(t, streamtest.Reply{Body: strings.Replace(e.stream(), `{"output_tokens":9}`, in, 1)})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		streamtest.CheckUsage(t, resp, 11_000)
		if u := resp.Usage; u.OutputTokens != tt.output || u.InputTokens == 0 || (resp.Warning != "") != tt.doubt {
			t.Errorf("%s became %v with the warning %q", in, u, resp.Warning)
		}
	}
}
