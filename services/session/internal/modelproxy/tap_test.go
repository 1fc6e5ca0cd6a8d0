package modelproxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const (
	messagesStream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":3,\"output_tokens\":1}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"say \\\"usage\\\"\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9,\"output_tokens_details\":{\"thinking_tokens\":2}}}\n\n"
	chatStream = "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}],\"usage\":null}\n\n" +
		"data: {\"id\":\"c1\",\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n"
	chatUsage       = "data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":6},\"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n\n"
	chatDone        = "data: [DONE]\n\n"
	responsesStream = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"usage\":{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":6},\"output_tokens\":4,\"output_tokens_details\":{\"reasoning_tokens\":1}}}}\n\n"
)

// The first figures are too high, the last ones lack some or clear them.
const (
	estimated = `data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":900,"cache_read_input_tokens":80,"output_tokens":500}}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{},"usage":{"output_tokens":3}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{},"usage":{"input_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":9}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":9}}` + "\n\n"
	estimatedChat = `data: {"id":"c","choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":900,"completion_tokens":500}}` + "\n\n" +
		`data: {"id":"c","choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9}}` + "\n\n" +
		`data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":3}}}` + "\n\n"
)

func TestTheTapReadsTheUsageHoweverTheBytesCome(t *testing.T) {
	openAI := &sessionv1.Usage{InputTokens: 4, CacheReadTokens: 6, OutputTokens: 4, ThinkingTokens: 1}
	for _, c := range []struct {
		name, in, out, id string
		hidden, stream    bool
		want              *sessionv1.Usage
	}{
		{"Messages", messagesStream, messagesStream, "msg_1", false, true, &sessionv1.Usage{InputTokens: 7, CacheReadTokens: 3, OutputTokens: 9, ThinkingTokens: 2}},
		{"Chat Completions", chatStream + chatUsage + chatDone, chatStream + chatUsage + chatDone, "c1", false, true, openAI},
		{"Chat Completions, hidden", chatStream + chatUsage + chatDone, chatStream + chatDone, "c1", true, true, openAI},
		{"Chat Completions, hidden, with carriage returns", strings.ReplaceAll(chatStream+chatUsage+chatDone, "\n", "\r\n"), strings.ReplaceAll(chatStream+chatDone, "\n", "\r\n"), "c1", true, true, openAI},
		{"Chat Completions, hidden, cut", chatStream + "data: {\"id\"", chatStream + "data: {\"id\"", "c1", true, true, nil},
		{"Responses", responsesStream, responsesStream, "resp_1", false, true, openAI},
		{"a whole answer", `{"id":"msg_2","usage":{"input_tokens":1,"output_tokens":2}}`, `{"id":"msg_2","usage":{"input_tokens":1,"output_tokens":2}}`, "msg_2", false, false, &sessionv1.Usage{InputTokens: 1, OutputTokens: 2}},
		{"Messages, an estimate first", estimated, estimated, "m", false, true, &sessionv1.Usage{InputTokens: 7, CacheReadTokens: 3, CacheWriteTokens: 2, OutputTokens: 9}},
		{"Chat Completions, an estimate first", estimatedChat, estimatedChat, "c", false, true, &sessionv1.Usage{InputTokens: 4, CacheReadTokens: 3, OutputTokens: 9}},
		{"no JSON", "data: \"usage\" {\n\nusage", "data: \"usage\" {\n\nusage", "", false, true, nil},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			tp := &tap{stream: c.stream, hidden: c.hidden}
			var out []byte
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				out = append(out, tp.feed([]byte(rest[:n]))...)
				rest = rest[n:]
			}
			out = append(out, tp.last()...)
			if string(out) != c.out {
				t.Errorf("%s, %d bytes at a time: the client gets\n%s\nwant\n%s", c.name, size, out, c.out)
			}
			if d := cmp.Diff(c.want, tp.usage(), protocmp.Transform()); d != "" {
				t.Errorf("%s, %d bytes at a time: %s", c.name, size, d)
			}
			if tp.found.ID != c.id {
				t.Errorf("%s: the id is %q", c.name, tp.found.ID)
			}
		}
	}
}

func FuzzTap(f *testing.F) {
	for _, s := range []string{messagesStream, chatStream + chatUsage + chatDone, responsesStream} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		tp := &tap{stream: true}
		var out []byte
		size = max(1, size)
		for rest := in; len(rest) > 0; {
			n := min(size, len(rest))
			out = append(out, tp.feed(rest[:n])...)
			rest = rest[n:]
		}
		if out = append(out, tp.last()...); string(out) != string(in) {
			t.Fatalf("%q became %q", in, out)
		}
		if u := tp.usage(); u != nil && (u.InputTokens < 0 || u.OutputTokens < 0) {
			t.Fatalf("%q has the usage %v", in, u)
		}
	})
}
