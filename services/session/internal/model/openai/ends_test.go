package openai

import (
	"encoding/json"
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
	m := newChat(Config{Provider: "odd", BaseURL: streamtest.Serve(t, func([]byte) streamtest.Reply { return reply }), MaxOutputTokens: 100, ContextTokens: 1000, Idle: time.Minute})
	resp, _, err := streamtest.Play(t.Context(), t, m, ask("hi"))
	return resp, err
}

// ending is one way in which a stream of chunks ends.
type ending struct {
	content, finish, usage string
	done, cut              bool
	eol                    string
	space                  bool
}

const toldUsage = `{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":3}}`

// stream writes the chunks of an answer.
func (e ending) stream() string {
	var b strings.Builder
	begin := "data:"
	if e.space {
		begin = "data: "
	}
	send := func(choices, usage string) {
		if usage != "" {
			usage = `,"usage":` + usage
		}
		b.WriteString(": still here" + e.eol + e.eol + begin + `{"id":"c","choices":[` + choices + `]` + usage + "}" + e.eol + e.eol)
	}
	early, late := "", ""
	switch e.usage {
	case "early":
		early = toldUsage
	case "sums":
		early = `{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}`
		late = toldUsage
	case "late":
		early, late = "null", toldUsage
	}
	send(`{"index":0,"delta":{"role":"assistant","content":""}}`, early)
	switch e.content {
	case "text":
		send(`{"index":0,"delta":{"content":"é"}}`, early)
	case "call", "half a call":
		args := `"{\"a\":1}"`
		if e.content != "call" {
			args = `"{\"a\":"`
		}
		send(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"LS","arguments":`+args+`}}]}}`, early)
	}
	if e.finish != "" {
		send(`{"index":0,"delta":{},"finish_reason":"`+e.finish+`"}`, early)
	}
	if late != "" {
		send("", late)
	}
	if e.done {
		b.WriteString(begin + "[DONE]" + e.eol + e.eol)
	}
	return b.String()
}

// stop is the stop reason that the answer must have; empty when it is not whole.
func (e ending) stop() string {
	call := e.content == "call" || e.content == "half a call"
	switch {
	case e.finish == "abort", e.finish == "" && !e.done, e.finish == "" && (e.content == "" || e.content == "half a call"):
		return ""
	case e.finish == "length":
		return "max_tokens"
	case call:
		return "tool_use"
	}
	return "end_turn"
}

// TestHowStreamsEnd goes through all combinations of content, finish reason,
// usage, [DONE], a broken connection, line ends and framing.
func TestHowStreamsEnd(t *testing.T) {
	var e ending
	n := 0
	for _, e.content = range []string{"", "text", "call", "half a call"} {
		for _, e.finish = range []string{"", "stop", "length", "tool_calls", "abort"} {
			for _, e.usage = range []string{"", "early", "sums", "late"} {
				for _, e.eol = range []string{"\n", "\r\n", "\r"} {
					for bits := range 8 {
						e.done, e.cut, e.space = bits&1 != 0, bits&2 != 0, bits&4 != 0
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
	if e.stop() == "" {
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Kind != model.Unavailable {
			t.Fatalf("got %v, %v; want a stream that may be tried again", resp, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if resp.StopReason != e.stop() || (len(resp.Blocks) == 0) != (e.content == "") {
		t.Errorf("got %+v, want it to stop for %s", resp, e.stop())
	}
	want := &sessionv1.Usage{InputTokens: 4, CacheReadTokens: 3, OutputTokens: 9}
	if e.usage == "" {
		want = &sessionv1.Usage{InputTokens: resp.Usage.GetInputTokens(), OutputTokens: map[string]int64{"text": 1, "call": 2, "half a call": 2}[e.content]}
	}
	if diff := cmp.Diff(want, resp.Usage, protocmp.Transform()); diff != "" || resp.Usage.GetInputTokens() == 0 || resp.Warning != "" {
		t.Errorf("usage: %s%s", diff, resp.Warning)
	}
}

// TestAServerThatStaysAfterTheFinishReasonIsNotWaitedFor has a server that sends
// neither [DONE] nor an end.
func TestAServerThatStaysAfterTheFinishReasonIsNotWaitedFor(t *testing.T) {
	begun := time.Now()
	resp, err := play(t, streamtest.Reply{Body: ending{content: "text", finish: "stop", eol: "\n"}.stream(), Stay: true})
	if err != nil || resp.StopReason != "end_turn" || time.Since(begun) > 30*time.Second {
		t.Errorf("got %v, %v after %s", resp, err, time.Since(begun))
	}
}

func TestAWholeAnswerInPlaceOfAStreamIsRead(t *testing.T) {
	body := `{
	"id": "c", "object": "chat.completion",
	"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": [
		{"id": "a", "type": "function", "function": {"name": "LS", "arguments": {"path": "/"}}},
		{"id": "b", "type": "function", "function": {"name": "LS", "arguments": "{}"}}]}, "finish_reason": "FINISH"}],
	"usage": ` + toldUsage + `}`
	for _, finish := range []string{"tool_calls", ""} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			resp, err := play(t, streamtest.Reply{Type: kind, Body: strings.Replace(body, "FINISH", finish, 1), Piece: 9})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"thinking hm", "text hi", `call LS {"path": "/"} a`, "call LS {} b"}, shape(resp.Blocks)); diff != "" || resp.StopReason != "tool_use" || resp.Usage.OutputTokens != 9 {
				t.Errorf("%+v: %s", resp, diff)
			}
		}
	}
	if resp, err := play(t, streamtest.Reply{Type: "application/json", Body: body[:len(body)-1]}); err == nil {
		t.Errorf("half a body is the answer %+v", resp)
	}
}

// TestAnErrorInsideA200IsToldWithItsWords has the forms in which servers tell an
// error in place of an answer.
func TestAnErrorInsideA200IsToldWithItsWords(t *testing.T) {
	const m = "the words of the provider"
	tests := []struct {
		kind string
		body string
		want model.ErrorKind
		said string
	}{
		{"text/event-stream", "data: [DONE]\n\n", model.Unavailable, "gave no answer"},
		{"text/event-stream", `data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}` + "\n\ndata: [DONE]\n\n", model.Unavailable, "gave no answer"},
		{"application/json", `{"error":{"message":"@","code":"insufficient_quota"}}`, model.Billing, m},
		{"text/event-stream", `{"error":{"message":"@","code":"insufficient_quota"}}`, model.Billing, m},
		{"text/event-stream", `data: {"object":"error","message":"@","code":400}` + "\n\n", model.Refused, m},
		{"text/event-stream", `data: {"error":"@"}` + "\n\n", model.Unavailable, m},
		{"text/event-stream", `data: {"error":{"message":"@","code":401}}` + "\n\n", model.Authentication, "key"},
		{"text/event-stream", `data: {"error":{"message":"@","code":"429"}}` + "\n\n", model.Unavailable, m},
		{"text/event-stream", `data: {"error":{"message":"@","code":"model_not_found"}}` + "\n\n", model.Refused, m},
		{"text/event-stream", `data: {"id":"x","choices":[{"delta":{},"finish_reason":"error"}],"error":{"message":"@","code":502}}` + "\n\n", model.Unavailable, m},
		{"text/event-stream", "event: error\ndata: {\"message\":\"@\",\"code\":403}\n\n", model.Authentication, "key"},
		{"text/event-stream", "data: @\n\n", model.Unavailable, m},
		{"text/event-stream", "<html><head><title>@</title></head>", model.Refused, "web page; check its base URL: " + m},
		{"text/html", "<html><head><title>@</title></head>", model.Refused, "web page; check its base URL: " + m},
		{"text/plain", "@", model.Unavailable, m},
		{"application/json", `[{"error":{"message":"@","status":"INVALID_ARGUMENT"}}]`, model.Refused, m},
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
}

func TestTheWordsOfAStatusReachTheUser(t *testing.T) {
	for status, body := range map[int]string{422: `{"detail":[{"msg":"the words"}]}`, 500: "the words", 404: "<html><h1>the words</h1>"} {
		_, err := play(t, streamtest.Reply{Status: status, Type: "text/plain", Body: body})
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Status != status || !strings.HasSuffix(failed.Message, ": the words") {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

func TestUsageThatCannotBeIsEstimated(t *testing.T) {
	text := `{"choices":[{"delta":{"content":"` + strings.Repeat("a", 400) + `"},"finish_reason":"stop"}],"usage":`
	tests := []struct {
		usage  string
		output int64
		doubt  bool
	}{
		{`{"prompt_tokens":2000000000000000,"completion_tokens":2000000000000000}`, 100, true},
		{`{"prompt_tokens":10,"completion_tokens":1e300}`, 100, true},
		{`{"prompt_tokens":99999999999999999999999,"completion_tokens":5}`, 5, true},
		{`{"prompt_tokens":-5,"completion_tokens":-9223372036854775808}`, 100, false},
		{`{"prompt_tokens":10,"completion_tokens":"5","prompt_tokens_details":{"cached_tokens":400},"completion_tokens_details":{"reasoning_tokens":0}}`, 5, false},
		{`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}}`, 12, false},
		{`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":4}}`, 5, false},
		{`"many"`, 100, false}, {`[]`, 100, false}, {`{"prompt_tokens":{},"completion_tokens":null}`, 100, false},
	}
	for _, tt := range tests {
		resp, err := play(t, streamtest.Reply{Body: "data: " + text + tt.usage + "}\n\ndata: [DONE]\n\n"})
		if err != nil {
			t.Errorf("%s: %v", tt.usage, err)
			continue
		}
		streamtest.CheckUsage(t, resp, 11_000)
		u := resp.Usage
		if u.OutputTokens != tt.output || u.InputTokens+u.CacheReadTokens == 0 || (resp.Warning != "") != tt.doubt {
			t.Errorf("%s became %v with the warning %q", tt.usage, u, resp.Warning)
		}
	}
}

// TestWhichCallIsWhich has parallel calls with missing, equal, repeated and odd
// ids and indexes.
func TestWhichCallIsWhich(t *testing.T) {
	call := func(index, id, name, args string) string {
		a, _ := json.Marshal(args)
		p := `"function":{"name":"` + name + `","arguments":` + string(a) + `}`
		if index != "" {
			p = `"index":` + index + "," + p
		}
		if id != "-" {
			p = `"id":` + id + "," + p
		}
		return "{" + p + "}"
	}
	two := []string{`call A {"x":1}`, `call B {"x":2}`}
	ids := func(list []string, more ...string) []string {
		out := append([]string(nil), list...)
		for i := range more {
			out[i] = strings.TrimSpace(out[i] + " " + more[i])
		}
		return out
	}
	tests := []struct {
		name   string
		pieces []string
		want   []string
	}{
		{"equal ids with indexes", []string{call("0", `"i"`, "A", `{"x":1}`), call("1", `"i"`, "B", `{"x":2}`)}, ids(two, "i", "i")},
		{"equal ids without indexes", []string{call("", `"i"`, "A", `{"x":1}`), call("", `"i"`, "B", `{"x":2}`)}, ids(two, "i", "i")},
		{"equal ids and names with indexes", []string{call("0", `"i"`, "A", `{"x":1}`), call("1", `"i"`, "A", `{"x":2}`)}, []string{`call A {"x":1} i`, `call A {"x":2} i`}},
		{"one index, no ids", []string{call("0", "-", "A", `{"x":1}`), call("0", "-", "B", `{"x":2}`)}, two},
		{"one index, no ids, one name", []string{call("0", "-", "A", `{"x":1}`), call("0", "-", "A", `{"x":2}`)}, []string{`call A {"x":1}`, `call A {"x":2}`}},
		{"one index, other ids", []string{call("0", `"i"`, "A", `{"x":`), call("0", `"i"`, "", `1}`), call("0", `"j"`, "B", `{"x":2}`)}, ids(two, "i", "j")},
		{"an index for each piece", []string{call("0", `"i"`, "A", `{"x":`), call("1", `"i"`, "", `1}`), call("2", `"j"`, "B", `{"x":2}`)}, ids(two, "i", "j")},
		{"an index for the first piece alone", []string{call("0", `"i"`, "A", `{"x":`), call("", "-", "", `1}`), call("1", `"j"`, "B", `{"x":2}`)}, ids(two, "i", "j")},
		{"numbers as ids and texts as indexes", []string{call(`"0"`, "1", "A", `{"x":1}`), call(`"1"`, "2", "B", `{"x":2}`)}, ids(two, "1", "2")},
		{"null for ids and indexes", []string{call("null", "null", "A", `{"x":1}`), call("null", "null", "B", `{"x":2}`)}, two},
		{"negative and huge indexes", []string{call("-1", `"i"`, "A", `{"x":1}`), call("99999999999999999999", `"j"`, "B", `{"x":`), call("99999999999999999999", "-", "", `2}`)}, ids(two, "i", "j")},
		{"a new id with each piece", []string{call("0", `"i"`, "A", `{"x":`), call("0", `"k"`, "", `1}`), call("1", `"j"`, "B", `{"x":2}`)}, ids(two, "i", "j")},
		{"an id that comes back", []string{call("0", `"i"`, "A", `{"x":`), call("1", `"j"`, "B", `{"x":2}`), call("", `"i"`, "", `1}`)}, ids(two, "i", "j")},
	}
	for _, tt := range tests {
		for _, apart := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, each in its chunk: %v", tt.name, apart), func(t *testing.T) {
				sep := `]}}]}` + "\n\n" + `data: {"choices":[{"delta":{"tool_calls":[`
				if !apart {
					sep = ","
				}
				resp, err := play(t, streamtest.Reply{Body: `data: {"choices":[{"delta":{"tool_calls":[` + strings.Join(tt.pieces, sep) + `]},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, shape(resp.Blocks)); diff != "" || resp.StopReason != "tool_use" {
					t.Errorf("stops for %s: %s", resp.StopReason, diff)
				}
			})
		}
	}
}

// TestAWildServerIsReadInLinearTime has streams in which work for each piece could
// grow with all that came before.
func TestAWildServerIsReadInLinearTime(t *testing.T) {
	call := func(index int, args string) string {
		return fmt.Sprintf(`{"index":%d,"function":{"name":"LS","arguments":%q}}`, index, args)
	}
	chunk := func(delta string) string { return `data: {"choices":[{"delta":{` + delta + `}}]}` + "\n\n" }
	big := "{" + strings.Repeat(`{},`, 50_000) + "}"
	for name, stream := range map[string]string{
		"a call behind one that is not whole": chunk(`"tool_calls":[`+call(0, big)+`]`) + strings.Repeat(chunk(`"tool_calls":[`+call(1, " ")+`]`), 20_000),
		"text behind calls":                   chunk(`"tool_calls":[`+call(0, "{}")+`]`) + strings.Repeat(chunk(`"content":"a"`), 25_000),
		"details":                             strings.Repeat(chunk(`"reasoning_details":[{"type":"t","index":0,"text":"a"}]`), 50_000),
		"calls without end":                   "data: {\"choices\":[{\"delta\":{\"tool_calls\":[" + strings.Repeat(`{"index":0,"function":{"name":"A","arguments":"{}"}},{"index":0,"function":{"name":"B","arguments":"{}"}},`, 5_000) + call(2, "") + "]}}]}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := play(t, streamtest.Reply{Body: stream})
			var e *model.Error
			if !errors.As(err, &e) {
				t.Errorf("got %v", err)
			}
		})
	}
}
