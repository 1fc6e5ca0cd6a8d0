package modeltest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Responses starts a provider of the Responses API. It stops with the test.
func Responses(t testing.TB, script Script) *Server {
	s := start(t, "POST /v1/responses", script, serveResponses)
	s.URL = s.http.URL + "/v1"
	return s
}

// serveResponses answers one request of the Responses API.
func serveResponses(s *Server, w http.ResponseWriter, r *http.Request, body []byte) {
	n := len(s.Requests()) + len(s.Refused()) + 1
	w.Header().Set("x-request-id", fmt.Sprintf("req_%d", n))
	if r.Header.Get("Authorization") != "Bearer "+Key {
		chatError(w, http.StatusUnauthorized, Step{ErrorType: "invalid_request_error", ErrorCode: "invalid_api_key", ErrorMessage: "Incorrect API key provided: " + r.Header.Get("Authorization")})
		return
	}
	req, asked, refusal := readResponses(body)
	if refusal != nil {
		s.refuse(refusal.message)
		chatError(w, refusal.status, Step{ErrorType: "invalid_request_error", ErrorCode: refusal.code, ErrorMessage: refusal.message})
		return
	}
	req.Header, req.Query = r.Header.Clone(), r.URL.RawQuery
	step := s.next(req)
	if step.Status != 0 {
		chatError(w, step.Status, step)
		return
	}
	st := &stream{server: s, w: w, r: r, step: step}
	out := &output{stream: st, asked: asked, number: len(s.Requests()), model: req.Model}
	st.fail = func(st *stream) {
		out.event("error", map[string]any{"code": orNull(st.step.ErrorCode), "message": st.step.ErrorMessage, "param": nil})
	}
	st.run(func(st *stream) { out.write() })
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// output writes the events of an answer.
type output struct {
	*stream
	asked  asked
	number int
	model  string
	events int
	items  []any // the output so far
}

func (o *output) event(kind string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = kind, o.events
	o.events++
	_, _ = fmt.Fprintf(o.w, "event: %s\n", kind)
	data(o.stream, fields)
}

// response is the object that the first and the last events carry.
func (o *output) response(status string) map[string]any {
	r := map[string]any{
		"id": fmt.Sprintf("resp_%d", o.number), "object": "response", "created_at": 1, "status": status, "model": o.model, "error": nil,
		"incomplete_details": nil, "output": o.items, "store": false, "usage": nil,
	}
	if o.items == nil {
		r["output"] = []any{}
	}
	if status != "in_progress" {
		u := o.step.Usage
		r["usage"] = map[string]any{
			"input_tokens": u.Input + u.CacheRead, "input_tokens_details": map[string]any{"cached_tokens": u.CacheRead, "cache_write_tokens": 0},
			"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": u.Thinking},
			"total_tokens": u.Input + u.CacheRead + u.Output,
		}
	}
	return r
}

func (o *output) write() {
	o.open()
	o.event("response.created", map[string]any{"response": o.response("in_progress")})
	o.event("response.in_progress", map[string]any{"response": o.response("in_progress")})
	o.flush()
	o.reasoning()
	o.message()
	o.calls()
	o.ended()
	kind, whole := "response.completed", o.response("completed")
	switch stopReason(o.step) {
	case "max_tokens":
		kind, whole = "response.incomplete", o.response("incomplete")
		whole["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	case "refusal":
		if !o.step.OpenAI.Refusal {
			kind, whole = "response.incomplete", o.response("incomplete")
			whole["incomplete_details"] = map[string]any{"reason": "content_filter"}
		}
	}
	o.event(kind, map[string]any{"response": whole})
}

// begin adds an item and returns its index.
func (o *output) begin(item map[string]any) int {
	o.items = append(o.items, item)
	index := len(o.items) - 1
	o.event("response.output_item.added", map[string]any{"output_index": index, "item": item})
	return index
}

func (o *output) end(index int, item map[string]any) {
	o.items[index] = item
	o.event("response.output_item.done", map[string]any{"output_index": index, "item": item})
}

// encrypted is the encrypted form of reasoning that the fake accepts back.
func encrypted(id, thinking string) string { return signature(id + thinking) }

// reasoning writes an item with a summary, and one without for redacted thinking.
func (o *output) reasoning() {
	write := func(id string, summary string) {
		item := func(parts []any, final bool) map[string]any {
			it := map[string]any{"type": "reasoning", "id": id, "summary": parts}
			if final && o.asked.encrypted {
				it["encrypted_content"] = encrypted(id, summary)
			}
			return it
		}
		index := o.begin(item([]any{}, false))
		at := func(more map[string]any) map[string]any {
			more["item_id"], more["output_index"], more["summary_index"] = id, index, 0
			return more
		}
		if summary == "" {
			o.end(index, item([]any{}, true))
			return
		}
		part := func(text string) map[string]any { return map[string]any{"type": "summary_text", "text": text} }
		o.event("response.reasoning_summary_part.added", at(map[string]any{"part": part("")}))
		for _, p := range pieces(summary) {
			o.piece(func() { o.event("response.reasoning_summary_text.delta", at(map[string]any{"delta": p})) })
		}
		o.event("response.reasoning_summary_text.done", at(map[string]any{"text": summary}))
		o.event("response.reasoning_summary_part.done", at(map[string]any{"part": part(summary)}))
		o.end(index, item([]any{part(summary)}, true))
	}
	if o.step.Thinking != "" {
		write(fmt.Sprintf("rs_%d_0", o.number), o.step.Thinking)
	}
	if o.step.Redacted != "" {
		write(fmt.Sprintf("rs_%d_1", o.number), "")
	}
}

// message writes the text, as text or as a refusal.
func (o *output) message() {
	if len(o.step.Text) == 0 {
		return
	}
	id, kind, field := fmt.Sprintf("msg_%d", o.number), "output_text", "text"
	if o.step.OpenAI.Refusal {
		kind, field = "refusal", "refusal"
	}
	part := func(text string) map[string]any {
		p := map[string]any{"type": kind, field: text}
		if kind == "output_text" {
			p["annotations"], p["logprobs"] = []any{}, []any{}
		}
		return p
	}
	item := func(status string, content []any) map[string]any {
		it := map[string]any{"type": "message", "id": id, "status": status, "role": "assistant", "content": content}
		if o.step.Phase != "" {
			it["phase"] = o.step.Phase
		}
		return it
	}
	index := o.begin(item("in_progress", []any{}))
	at := func(more map[string]any) map[string]any {
		more["item_id"], more["output_index"], more["content_index"] = id, index, 0
		return more
	}
	o.event("response.content_part.added", at(map[string]any{"part": part("")}))
	for _, p := range o.step.Text {
		o.piece(func() { o.event("response."+kind+".delta", at(map[string]any{"delta": p})) })
	}
	whole := strings.Join(o.step.Text, "")
	o.event("response."+kind+".done", at(map[string]any{field: whole}))
	o.event("response.content_part.done", at(map[string]any{"part": part(whole)}))
	o.end(index, item("completed", []any{part(whole)}))
}

// calls writes the calls one after the other, or their pieces in turn.
func (o *output) calls() {
	var all [][]func()
	for i, c := range o.step.Calls {
		id, callID := fmt.Sprintf("fc_%d_%d", o.number, i), c.ID
		if callID == "" || o.step.OpenAI.SameIDs {
			callID = fmt.Sprintf("call_%d", i)
			if !o.step.OpenAI.SameIDs {
				callID = fmt.Sprintf("call_%d_%d", o.number, i)
			}
		}
		item := func(status, arguments string) map[string]any {
			return map[string]any{"type": "function_call", "id": id, "call_id": callID, "name": c.Name, "arguments": arguments, "status": status}
		}
		index := 0
		at := func(more map[string]any) map[string]any {
			more["item_id"], more["output_index"] = id, index
			return more
		}
		steps := []func(){func() { index = o.begin(item("in_progress", "")) }}
		if !o.step.OpenAI.WholeCalls {
			for _, p := range pieces(c.Input) {
				steps = append(steps, func() { o.event("response.function_call_arguments.delta", at(map[string]any{"delta": p})) })
			}
		}
		steps = append(steps, func() {
			o.event("response.function_call_arguments.done", at(map[string]any{"name": c.Name, "arguments": c.Input}))
			o.end(index, item("completed", c.Input))
		})
		all = append(all, steps)
	}
	for _, write := range order(all, o.step.OpenAI.Interleave) {
		o.piece(write)
	}
}
