package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// chunks writes a stream of chunks with the given choices.
func chunks(choices ...string) string {
	var b strings.Builder
	for _, c := range choices {
		b.WriteString(`data: {"choices":[` + c + "]}\n\n")
	}
	return b.String() + "data: [DONE]\n\n"
}

// callChunk writes a choice whose delta has one piece of a call.
func callChunk(piece string) string { return `{"delta":{"tool_calls":[{` + piece + `}]}}` }

// TestARepeatedCallIsOneCall has servers that send pieces of a call again.
func TestARepeatedCallIsOneCall(t *testing.T) {
	f := func(name, args string) string {
		return `"function":{"name":"` + name + `","arguments":"` + strings.ReplaceAll(args, `"`, `\"`) + `"}`
	}
	one := []string{`call A {"x":1} i`}
	two := []string{one[0], `call A {"x":2} i`}
	bare := []string{`call A {"x":1}`}
	tests := []struct {
		name   string
		pieces []string
		want   []string
	}{
		{"with index 0", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":0,"id":"i",` + f("A", `{"x":1}`)}, one},
		{"without index", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":1}`)}, one},
		{"three times", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":1}`)}, one},
		{"under another index", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":1,"id":"i",` + f("A", `{"x":1}`)}, one},
		{"under another index, in pieces", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":1,"id":"i",` + f("A", ``), `"index":1,` + f("", `{"x"`), `"index":1,` + f("", `:1}`)}, one},
		{"once without index", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":1}`)}, one},
		{"without its id", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":0,` + f("A", `{"x":1}`)}, one},
		{"without its id and index", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), f("A", `{"x":1}`)}, one},
		{"without its name", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":0,"id":"i",` + f("", `{"x":1}`)}, one},
		{"its arguments alone", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":0,` + f("", `{"x":1}`)}, one},
		{"without any id", []string{`"index":0,` + f("A", `{"x":1}`), `"index":0,` + f("A", `{"x":1}`)}, bare},
		{"with other spaces", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", ` { "x" : 1 } `)}, one},
		{"in pieces", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x"`), `"id":"i",` + f("A", `:1}`)}, one},
		{"after its pieces", []string{`"index":0,"id":"i",` + f("A", `{"x"`), `"index":0,` + f("", `:1}`), `"index":0,"id":"i",` + f("A", `{"x":1}`)}, one},
		{"after another call", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"j",` + f("B", `{}`), `"id":"i",` + f("A", `{"x":1}`), `"id":"j",` + f("B", `{}`)}, []string{one[0], "call B {} j"}},
		{"under the id of all calls", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("B", `{"x":2}`), `"id":"i",` + f("A", `{"x":1}`)}, []string{one[0], `call B {"x":2} i`}},
		{"{} before the arguments", []string{`"id":"i",` + f("A", `{}`), `"id":"i",` + f("A", `{"x":1}`)}, one},
		{"{} before the arguments, with an index", []string{`"index":0,"id":"i",` + f("A", ` {}`), `"index":0,` + f("", `{"x"`), `"index":0,` + f("", `:1}`)}, one},
		{"{} in pieces before the arguments", []string{`"id":"i",` + f("A", `{`), `"id":"i",` + f("A", `}`), `"id":"i",` + f("A", `{"x":1}`)}, one},
		{"{} of two calls before their arguments", []string{`"id":"i",` + f("A", `{}`), `"id":"j",` + f("A", `{}`), `"id":"i",` + f("A", `{"x":1}`), `"id":"j",` + f("A", `{"x":2}`)}, []string{one[0], `call A {"x":2} j`}},
		{"{} after the arguments", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{}`)}, one},
		{"{} twice", []string{`"id":"i",` + f("A", `{}`), `"id":"i",` + f("A", `{}`)}, []string{"call A {} i"}},
		{"with other arguments", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":2}`)}, two},
		{"with other arguments and index 0", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":0,"id":"i",` + f("A", `{"x":2}`)}, two},
		{"with other arguments and an index each", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":1,"id":"i",` + f("A", `{"x":2}`)}, two},
		{"with other arguments, in pieces", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x"`), `"id":"i",` + f("", `:2}`)}, two},
		{"with other arguments, each twice", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":2}`), `"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":2}`)}, two},
		{"with other arguments after another call", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"j",` + f("B", `{}`), `"id":"i",` + f("A", `{"x":2}`)}, []string{one[0], "call B {} j", two[1]}},
		{"three times, each with others", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":2}`), `"id":"i",` + f("A", `{"x":3}`)}, []string{two[0], two[1], `call A {"x":3} i`}},
		{"an id that comes late, with other arguments", []string{`"index":0,` + f("A", `{"x":1}`), `"index":0,"id":"i",` + f("", `{"x":2}`)}, []string{bare[0], two[1]}},
		{"an id and a name that come late, with other arguments", []string{`"index":0,` + f("A", `{"x":1}`), `"index":0,"id":"i",` + f("A", `{"x":2}`)}, []string{bare[0], two[1]}},
		{"an id that comes late, without index", []string{f("A", `{"x":1}`), `"id":"i",` + f("", `{"x":2}`)}, []string{bare[0], two[1]}},
		{"an id that comes late, with the same arguments", []string{`"index":0,` + f("A", `{"x":1}`), `"index":0,"id":"i",` + f("", `{"x":1}`)}, bare},
		{"in part", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x"`)}, one},
		{"with other arguments, in part", []string{`"id":"i",` + f("A", `{"x":1}`), `"id":"i",` + f("A", `{"x":2`)}, []string{one[0], `call A {"x":2 i`}},
		{"a fault of the model", []string{`"index":0,"id":"i",` + f("A", `{"x":1}`), `"index":0,` + f("", `{"x":2}`)}, []string{`call A {"x":1}{"x":2} i`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var choices []string
			for _, p := range tt.pieces {
				choices = append(choices, callChunk(p))
			}
			choices = append(choices, `{"delta":{},"finish_reason":"tool_calls"}`)
			resp, err := play(t, streamtest.Reply{Body: chunks(choices...)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, shape(resp.Blocks)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAMessageBesideDeltasIsTheSameAnswer has servers that send the whole answer,
// or the answer so far, beside or in place of deltas.
func TestAMessageBesideDeltasIsTheSameAnswer(t *testing.T) {
	const call = `"tool_calls":[{"index":0,"id":"i","function":{"name":"A","arguments":"{\"x\":1}"}}]`
	const nameless = `"tool_calls":[{"function":{"name":"A","arguments":{"x":1}}}]`
	end := `{"delta":{},"finish_reason":"stop"}`
	text, one := []string{"text ab"}, []string{"text ab", `call A {"x":1} i`}
	tests := []struct {
		name    string
		choices []string
		want    []string
	}{
		{"the answer so far beside each delta", []string{`{"delta":{"content":"a"},"message":{"content":"a"}}`, `{"delta":{"content":"b"},"message":{"content":"ab"}}`, end}, text},
		{"an empty message beside each delta", []string{`{"delta":{"content":"a"},"message":{"content":""}}`, `{"delta":{"content":"b"},"message":{}}`, end}, text},
		{"the whole answer after the deltas", []string{`{"delta":{"content":"a"}}`, `{"delta":{"content":"b"}}`, `{"delta":{},"message":{"content":"ab"},"finish_reason":"stop"}`}, text},
		{"the whole answer after the deltas, alone", []string{`{"delta":{"content":"a"}}`, `{"delta":{"content":"b"}}`, `{"message":{"content":"ab"},"finish_reason":"stop"}`}, text},
		{"a call again", []string{`{"delta":{"content":"ab"}}`, `{"delta":{` + call + `}}`, `{"message":{"content":"ab",` + call + `},"finish_reason":"tool_calls"}`}, one},
		{"a call again without id", []string{`{"delta":{"content":"ab"}}`, `{"delta":{` + call + `}}`, `{"delta":null,"message":{"content":"ab",` + nameless + `},"finish_reason":"tool_calls"}`}, one},
		{"the answer so far before its delta", []string{`{"delta":{},"message":{"content":"a"}}`, `{"delta":{"content":"ab"}}`, end}, text},
		{"a call in the message alone", []string{`{"delta":{"content":"ab"},"message":{"content":"ab"}}`, `{"message":{"content":"ab",` + call + `},"finish_reason":"tool_calls"}`}, one},
		{"empty deltas", []string{`{"delta":{"role":"assistant","content":""},"message":{"content":"ab"}}`, end}, text},
		{"the answer so far, no deltas", []string{`{"message":{"content":"a"}}`, `{"message":{"content":"ab"}}`, `{"message":{"content":"ab",` + nameless + `}}`, `{"message":{"content":"ab",` + nameless + `},"finish_reason":"stop"}`}, []string{"text ab", `call A {"x":1}`}},
		{"the arguments so far, no deltas", []string{`{"message":{"content":"ab","tool_calls":[{"id":"i","function":{"name":"A","arguments":"{\"x\":"}}]}}`, `{"message":{"content":"ab",` + call + `},"finish_reason":"stop"}`}, one},
		{"pieces, no deltas", []string{`{"message":{"content":"a"}}`, `{"message":{"content":"b"}}`, `{"message":{"content":""},"finish_reason":"stop"}`}, text},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := play(t, streamtest.Reply{Body: chunks(tt.choices...)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, shape(resp.Blocks)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
