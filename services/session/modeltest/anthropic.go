package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// serveMessages answers one request of the Messages API.
func serveMessages(s *Server, w http.ResponseWriter, r *http.Request, body []byte) {
	key, token := r.Header.Get("x-api-key"), r.Header.Get("Authorization")
	if key != Key && token != "Bearer "+Key {
		messagesError(w, http.StatusUnauthorized, Step{ErrorType: "authentication_error", ErrorMessage: "invalid x-api-key " + key + token})
		return
	}
	answerMessages(s, w, r, body, r.Header.Get("anthropic-version"))
}

// answerMessages answers an authenticated request in a version of the API.
func answerMessages(s *Server, w http.ResponseWriter, r *http.Request, body []byte, version string) {
	req, err := readMessages(body)
	if err == nil {
		err = checkVersion(req, version)
	}
	if err != nil {
		s.refuse(err.Error())
		messagesError(w, http.StatusBadRequest, Step{ErrorType: "invalid_request_error", ErrorMessage: err.Error()})
		return
	}
	req.Header, req.Query = r.Header.Clone(), r.URL.RawQuery
	step := s.next(req)
	if step.Status != 0 {
		messagesError(w, step.Status, step)
		return
	}
	st := &stream{server: s, w: w, r: r, step: step, fail: func(st *stream) {
		sse(st, "error", map[string]any{"error": map[string]any{"type": st.step.ErrorType, "message": st.step.ErrorMessage}})
	}}
	st.run(func(st *stream) { streamMessage(st, req.Model) })
}

// checkVersion checks what the versions of the API want.
func checkVersion(req Request, version string) error {
	switch version {
	case "2023-06-01":
		return nil
	case "2026-10-21":
		for _, field := range []string{"temperature", "top_p", "top_k"} {
			if _, there := req.Body[field]; there {
				return fmt.Errorf("%s: is not supported from version 2026-10-21 on", field)
			}
		}
		return nil
	}
	return fmt.Errorf("anthropic-version: %q is not a version", version)
}

func messagesError(w http.ResponseWriter, status int, step Step) {
	detail := map[string]any{"type": step.ErrorType, "message": step.ErrorMessage}
	if step.ErrorCode != "" {
		detail["details"] = map[string]any{"error_code": step.ErrorCode}
	}
	writeJSON(w, status, step.Header, map[string]any{"type": "error", "error": detail, "request_id": "req_1"})
}

func sse(st *stream, name string, data map[string]any) {
	data["type"] = name
	b, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(st.w, "event: %s\ndata: %s\n\n", name, b)
}

// streamMessage writes the events of an answer.
func streamMessage(st *stream, model string) {
	st.open()
	u := st.step.Usage
	sse(st, "message_start", map[string]any{"message": map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead, "output_tokens": 1},
	}})
	sse(st, "ping", map[string]any{})
	index := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		sse(st, "content_block_start", map[string]any{"index": index, "content_block": start})
		for _, d := range deltas {
			st.piece(func() { sse(st, "content_block_delta", map[string]any{"index": index, "delta": d}) })
		}
		sse(st, "content_block_stop", map[string]any{"index": index})
		index++
	}
	streamBlocks(st.step, block)
	st.ended()
	sse(st, "an_event_of_tomorrow", map[string]any{"index": 99})
	sse(st, "message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stopReason(st.step), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": u.Output, "output_tokens_details": map[string]any{"thinking_tokens": u.Thinking}},
	})
	sse(st, "message_stop", map[string]any{})
}

func streamBlocks(step Step, block func(start map[string]any, deltas ...map[string]any)) {
	if step.Thinking != "" {
		var deltas []map[string]any
		for _, p := range pieces(step.Thinking) {
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": p})
		}
		deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": signature(step.Thinking)})
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, deltas...)
	}
	if step.Redacted != "" {
		block(map[string]any{"type": "redacted_thinking", "data": step.Redacted})
	}
	if len(step.Text) > 0 {
		var deltas []map[string]any
		for _, p := range step.Text {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": p})
		}
		block(map[string]any{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range step.Calls {
		deltas := []map[string]any{{"type": "input_json_delta", "partial_json": ""}}
		for _, p := range pieces(c.Input) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": p})
		}
		block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}, deltas...)
	}
}

// signature returns the proof that thinking is unchanged when it comes back.
func signature(thinking string) string { return fmt.Sprintf("sig-%d-%x", len(thinking), thinking) }

func stopReason(step Step) string {
	switch {
	case step.StopReason != "":
		return step.StopReason
	case len(step.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// readMessages reads a request and checks the rules that the real API enforces.
func readMessages(body []byte) (Request, error) {
	var m struct {
		Model     string          `json:"model"`
		MaxTokens int64           `json:"max_tokens"`
		Stream    bool            `json:"stream"`
		System    json.RawMessage `json:"system"`
		Messages  []message       `json:"messages"`
		Tools     []tool          `json:"tools"`
		Thinking  struct {
			Type   string `json:"type"`
			Budget int64  `json:"budget_tokens"`
		} `json:"thinking"`
	}
	req := Request{}
	if err := json.Unmarshal(body, &m); err != nil {
		return req, fmt.Errorf("the body is not the JSON of a request: %w", err)
	}
	if err := req.keep(body); err != nil {
		return req, err
	}
	req.Model = m.Model
	switch {
	case m.Model == "":
		return req, fmt.Errorf("model: field required")
	case m.MaxTokens < 1:
		return req, fmt.Errorf("max_tokens: must be at least 1")
	case !m.Stream:
		return req, fmt.Errorf("stream: this fake only streams")
	case m.Thinking.Type == "enabled" && (m.Thinking.Budget < 1024 || m.Thinking.Budget >= m.MaxTokens):
		return req, fmt.Errorf("thinking.budget_tokens: must be at least 1024 and less than max_tokens")
	case strings.Count(string(body), `"cache_control"`) > 4:
		return req, fmt.Errorf("a maximum of 4 blocks with cache_control may be provided")
	}
	var system []block
	if m.System != nil && json.Unmarshal(m.System, &system) != nil {
		return req, fmt.Errorf("system: this fake wants blocks")
	}
	for _, b := range system {
		req.System += b.Text
	}
	if err := checkTools(&req, m.Tools); err != nil {
		return req, err
	}
	return req, checkMessages(&req, m.Messages, m.Thinking.Type == "enabled")
}

// tool is a tool that is offered to the model.
type tool struct {
	Name   string `json:"name"`
	Schema schema `json:"input_schema"`
}

// schema is the checked part of a JSON Schema.
type schema struct {
	Type any `json:"type"`
	Open any `json:"additionalProperties"`
}

func checkTools(req *Request, tools []tool) error {
	seen := map[string]bool{}
	for i, t := range tools {
		if !toolName.MatchString(t.Name) || seen[t.Name] {
			return fmt.Errorf("tools.%d.name: must be unique and match ^[a-zA-Z0-9_-]{1,128}$", i)
		}
		if t.Schema.Type != "object" {
			return fmt.Errorf("tools.%d.input_schema.type: must be object", i)
		}
		seen[t.Name] = true
		req.Tools = append(req.Tools, t.Name)
	}
	return nil
}
