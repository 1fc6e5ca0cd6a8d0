package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// serveChat answers one request of the Chat Completions API.
func serveChat(s *Server, w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get("Authorization") != "Bearer "+Key {
		chatError(w, http.StatusUnauthorized, Step{ErrorType: "invalid_request_error", ErrorCode: "invalid_api_key", ErrorMessage: "Incorrect API key provided: " + r.Header.Get("Authorization")})
		return
	}
	req, usage, err := readChat(body)
	if err != nil {
		s.refuse(err.Error())
		chatError(w, http.StatusBadRequest, Step{ErrorType: "invalid_request_error", ErrorMessage: err.Error()})
		return
	}
	req.Header, req.Query = r.Header.Clone(), r.URL.RawQuery
	step := s.next(req)
	if step.Status != 0 {
		chatError(w, step.Status, step)
		return
	}
	st := &stream{server: s, w: w, r: r, step: step, fail: func(st *stream) {
		data(st, map[string]any{"error": chatDetail(st.step)})
	}}
	st.run(func(st *stream) { streamChat(st, req.Model, len(s.Requests()), usage) })
}

func chatDetail(step Step) map[string]any {
	detail := map[string]any{"message": step.ErrorMessage, "type": step.ErrorType, "param": nil, "code": nil}
	if step.ErrorCode != "" {
		detail["code"] = step.ErrorCode
	}
	return detail
}

func chatError(w http.ResponseWriter, status int, step Step) {
	writeJSON(w, status, step.Header, map[string]any{"error": chatDetail(step)})
}

func data(st *stream, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if st.step.OpenAI.Comments {
		_, _ = fmt.Fprint(st.w, ": still here\n\n")
	}
	_, _ = fmt.Fprintf(st.w, "data: %s\n\n", b)
}

// streamChat writes the chunks of an answer.
func streamChat(st *stream, model string, n int, usage bool) {
	st.open()
	send := func(choices []any, usage any) {
		data(st, map[string]any{
			"id": fmt.Sprintf("chatcmpl-%d", n), "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, "usage": usage,
		})
	}
	delta := func(d map[string]any) {
		send([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""})
	chatContent(st.step, func(d map[string]any) { st.piece(func() { delta(d) }) })
	for _, p := range callPieces(st.step, n) {
		st.piece(func() { delta(map[string]any{"tool_calls": []any{p}}) })
	}
	st.ended()
	send([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish(st.step)}}, nil)
	if u := st.step.Usage; usage && u != (Usage{}) {
		prompt := u.Input + u.CacheRead
		send([]any{}, map[string]any{
			"prompt_tokens": prompt, "completion_tokens": u.Output, "total_tokens": prompt + u.Output,
			"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead},
			"completion_tokens_details": map[string]any{"reasoning_tokens": u.Thinking},
		})
	}
	if !st.step.OpenAI.NoDone {
		_, _ = fmt.Fprint(st.w, "data: [DONE]\n\n")
	}
}

func chatContent(step Step, send func(map[string]any)) {
	if step.Thinking != "" {
		field := step.OpenAI.Reasoning
		if field == "" {
			field = "reasoning_content"
		}
		for _, p := range pieces(step.Thinking) {
			send(map[string]any{field: p})
		}
	}
	field := "content"
	if step.OpenAI.Refusal {
		field = "refusal"
	}
	for _, p := range step.Text {
		send(map[string]any{field: p})
	}
}

// callPieces returns the pieces of all calls in the order of sending.
func callPieces(step Step, answer int) []map[string]any {
	h := step.OpenAI
	var byCall [][]map[string]any
	for i, c := range step.Calls {
		id := c.ID
		if h.EmptyIDs {
			id = ""
		} else if id == "" || h.SameIDs {
			id = fmt.Sprintf("call_%d", i)
			if !h.SameIDs {
				id = fmt.Sprintf("call_%d_%d", answer, i)
			}
		}
		parts := append([]string{""}, pieces(c.Input)...)
		if h.WholeCalls {
			parts = []string{c.Input}
		}
		var list []map[string]any
		for j, args := range parts {
			f := map[string]any{"arguments": args}
			p := map[string]any{"index": i, "function": f}
			if j == 0 {
				p["id"], p["type"] = id, "function"
			}
			if j == 0 || h.RepeatName {
				f["name"] = c.Name
			}
			if h.NoIndex {
				delete(p, "index")
			}
			list = append(list, p)
		}
		byCall = append(byCall, list)
	}
	return order(byCall, h.Interleave)
}

// order returns the pieces of all calls one call after the other, or in turn.
func order[P any](byCall [][]P, interleave bool) []P {
	var out []P
	if !interleave {
		for _, l := range byCall {
			out = append(out, l...)
		}
		return out
	}
	for j, more := 0, true; more; j++ {
		more = false
		for _, l := range byCall {
			if j < len(l) {
				out, more = append(out, l[j]), true
			}
		}
	}
	return out
}

func finish(step Step) string {
	if step.OpenAI.WrongFinish {
		return "stop"
	}
	reason, ok := map[string]string{
		"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter", "stop_sequence": "stop",
	}[stopReason(step)]
	if !ok {
		return "stop"
	}
	return reason
}

// chatMessage is of the Chat Completions API.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// text returns the text of a message's content, which is a string or parts.
func (m chatMessage) text() (string, error) {
	var s string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &s) == nil {
		return s, nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil || len(parts) == 0 {
		return "", fmt.Errorf("content must be a string or parts")
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && strings.TrimSpace(p.Text) != "":
			s += p.Text
		case p.Type == "image_url" && strings.HasPrefix(p.ImageURL.URL, "data:image/"):
		default:
			return "", fmt.Errorf("a part of type %q is wrong", p.Type)
		}
	}
	return s, nil
}

// readChat reads a request and checks the rules that the real API enforces.
// usage reports that the client asked for it.
func readChat(body []byte) (req Request, usage bool, err error) {
	var c struct {
		Model         string        `json:"model"`
		Stream        bool          `json:"stream"`
		Messages      []chatMessage `json:"messages"`
		MaxTokens     int           `json:"max_tokens"`
		MaxCompletion int           `json:"max_completion_tokens"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Tools []struct {
			Type     string `json:"type"`
			Function struct {
				Name       string `json:"name"`
				Parameters schema `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return req, false, fmt.Errorf("the body is not the JSON of a request: %w", err)
	}
	if err := req.keep(body); err != nil {
		return req, false, err
	}
	req.Model = c.Model
	switch {
	case c.Model == "" || !c.Stream:
		return req, false, fmt.Errorf("model and stream are required")
	case c.MaxTokens > 0 && c.MaxCompletion > 0, c.MaxTokens < 0, c.MaxCompletion < 0:
		return req, false, fmt.Errorf("max_tokens and max_completion_tokens exclude each other")
	}
	seen := map[string]bool{}
	for i, t := range c.Tools {
		if t.Type != "function" || !toolName.MatchString(t.Function.Name) || seen[t.Function.Name] || t.Function.Parameters.Type != "object" {
			return req, false, fmt.Errorf("tools[%d] is not a function with a unique name and an object as parameters", i)
		}
		seen[t.Function.Name] = true
		req.Tools = append(req.Tools, t.Function.Name)
	}
	return req, c.StreamOptions.IncludeUsage, checkChat(&req, c.Messages)
}

// checkChat checks the conversation and reads what scripts need.
func checkChat(req *Request, messages []chatMessage) error {
	open := map[string]bool{}
	seen := map[string]bool{}
	for i, m := range messages {
		text, err := m.text()
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("messages[%d]: an assistant message with tool_calls must be followed by tool messages for each tool_call_id: %v", i, open)
		}
		switch {
		case m.Role == "system" && i == 0:
			req.System = text
		case m.Role == "user" && len(m.Content) > 0:
			if text != "" { // images of results come as a user message
				req.UserText, req.Step = text, 0
			}
		case m.Role == "tool" && open[m.ToolCallID] && len(m.Content) > 0:
			delete(open, m.ToolCallID)
			req.LastResult = text
		case m.Role == "assistant" && (text != "" || len(m.ToolCalls) > 0):
			req.Step++
			for _, c := range m.ToolCalls {
				var args map[string]json.RawMessage
				if c.ID == "" || len(c.ID) > 40 || seen[c.ID] || c.Type != "function" || json.Unmarshal([]byte(c.Function.Arguments), &args) != nil {
					return fmt.Errorf("messages[%d].tool_calls: %+v is wrong", i, c)
				}
				open[c.ID], seen[c.ID] = true, true
			}
		default:
			return fmt.Errorf("messages[%d]: a %s message is wrong here", i, m.Role)
		}
	}
	if len(messages) == 0 || len(open) > 0 {
		return fmt.Errorf("messages: empty, or tool calls without results: %v", open)
	}
	req.Step++
	return nil
}
