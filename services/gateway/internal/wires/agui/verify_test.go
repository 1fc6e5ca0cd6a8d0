package agui

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// verifier checks a stream as official clients do. A violation rejects the run.
type verifier struct {
	started, finished, failed bool
	open                      map[string]string // by kind and id, the owner
	subagents                 map[string]bool   // true: open
	// messages are what a client's reducer has.
	messages []map[string]any
	state    map[string]any
	outcome  string
	last     map[string]any
}

func newVerifier() *verifier {
	return &verifier{open: map[string]string{}, subagents: map[string]bool{}, state: map[string]any{}}
}

// parts are the events that open, go on with and close an item; the field of its id.
var parts = map[string][3]string{
	"STEP_STARTED": {"open", "step", "stepName"}, "STEP_FINISHED": {"close", "step", "stepName"},
	"TEXT_MESSAGE_START": {"open", "text", "messageId"}, "TEXT_MESSAGE_CONTENT": {"in", "text", "messageId"}, "TEXT_MESSAGE_END": {"close", "text", "messageId"},
	"TOOL_CALL_START": {"open", "call", "toolCallId"}, "TOOL_CALL_ARGS": {"in", "call", "toolCallId"}, "TOOL_CALL_END": {"close", "call", "toolCallId"},
	"REASONING_START": {"open", "span", "messageId"}, "REASONING_END": {"close", "span", "messageId"},
	"REASONING_MESSAGE_START": {"open", "reasoning", "messageId"}, "REASONING_MESSAGE_CONTENT": {"in", "reasoning", "messageId"}, "REASONING_MESSAGE_END": {"close", "reasoning", "messageId"},
}

// take takes an event; its error names the rule that it breaks.
func (v *verifier) take(data string) error {
	var e map[string]any
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	v.last = e
	kind, _ := e["type"].(string)
	for name, value := range e {
		if value == nil {
			return fmt.Errorf("%s is null in %s", name, data)
		}
	}
	switch {
	case !v.started && kind != "RUN_STARTED" && kind != "RUN_ERROR":
		return fmt.Errorf("rule 1: the first event is %s", data)
	case v.started && !v.finished && !v.failed && kind == "RUN_STARTED":
		return fmt.Errorf("rule 1: a second run begins in the first: %s", data)
	case v.finished && kind != "RUN_ERROR" && kind != "RUN_STARTED", v.failed && kind != "RUN_STARTED":
		return fmt.Errorf("rule 2: after the end there is %s", data)
	}
	owner, _ := e["subagentRunId"].(string)
	if p, ok := parts[kind]; ok {
		return v.item(p, e, owner)
	}
	return v.other(kind, owner, e)
}

func (v *verifier) item(p [3]string, e map[string]any, owner string) error {
	id, _ := e[p[2]].(string)
	key := p[1] + " " + id
	if p[1] == "step" {
		key += " of " + owner
	}
	opener, open := v.open[key]
	switch {
	case id == "":
		return fmt.Errorf("no id in %v", e)
	case (p[0] == "open") == open:
		return fmt.Errorf("rule 3 or 5: %s is open: %t, in %v", key, open, e)
	case p[0] != "open" && opener != owner:
		return fmt.Errorf("rule 7: %s is of %q, not %q", key, opener, owner)
	case owner != "" && !v.subagents[owner]:
		return fmt.Errorf("rule 7: subagent %q is not open in %v", owner, e)
	}
	switch p[0] {
	case "open":
		v.open[key] = owner
	case "close":
		delete(v.open, key)
	}
	return v.reduce(p, e, id, owner)
}

func (v *verifier) other(kind, owner string, e map[string]any) error {
	switch kind {
	case "RUN_STARTED":
		*v = verifier{started: true, open: map[string]string{}, subagents: map[string]bool{}, messages: v.messages, state: v.state, last: e}
	case "RUN_ERROR":
		v.started, v.failed, v.outcome = true, true, "error"
	case "RUN_FINISHED":
		v.finished = true
		o, _ := e["outcome"].(map[string]any)
		v.outcome, _ = o["type"].(string)
		for id, open := range v.subagents {
			if open {
				return fmt.Errorf("rule 4: subagent %s is open at the end", id)
			}
		}
		if len(v.open) > 0 {
			return fmt.Errorf("rule 4: open at the end: %v", v.open)
		}
		if i, _ := o["interrupts"].([]any); v.outcome == "interrupt" && len(i) == 0 {
			return fmt.Errorf("an interrupt without interrupts: %v", e)
		}
	case "SUBAGENT_STARTED":
		_, had := v.subagents[owner]
		parent, _ := e["parentSubagentRunId"].(string)
		if had || owner == "" || parent != "" && !v.subagents[parent] {
			return fmt.Errorf("rule 7: subagent %q begins again, or its parent %q is not open", owner, parent)
		}
		v.subagents[owner] = true
	case "SUBAGENT_FINISHED", "SUBAGENT_ERROR":
		if !v.subagents[owner] {
			return fmt.Errorf("rule 7: subagent %q ends and is not open", owner)
		}
		v.subagents[owner] = false
	case "TOOL_CALL_RESULT":
		id, _ := e["messageId"].(string)
		if id == e["toolCallId"] || slices.ContainsFunc(v.messages, func(m map[string]any) bool { return m["id"] == id }) {
			return fmt.Errorf("rule 6: the message %s of a result is not new", id)
		}
		m := v.message(id, "tool", owner)
		m["content"], m["toolCallId"] = e["content"], e["toolCallId"]
	case "MESSAGES_SNAPSHOT":
		v.messages = nil
		all, _ := e["messages"].([]any)
		for _, m := range all {
			v.messages = append(v.messages, m.(map[string]any))
		}
	case "STATE_DELTA":
		for _, op := range e["delta"].([]any) {
			if err := v.patch(op.(map[string]any)); err != nil {
				return err
			}
		}
	case "CUSTOM":
		if e["name"] == nil || e["value"] == nil {
			return fmt.Errorf("a CUSTOM without a name or a value: %v", e)
		}
	default:
		return fmt.Errorf("an unknown event: %v", e)
	}
	if owner != "" && !strings.HasPrefix(kind, "SUBAGENT") && !v.subagents[owner] {
		return fmt.Errorf("rule 7: subagent %q is not open in %v", owner, e)
	}
	return nil
}

// patch applies an operation whose parent must be there.
func (v *verifier) patch(op map[string]any) error {
	path := strings.Split(strings.TrimPrefix(op["path"].(string), "/"), "/")
	at := v.state
	for _, name := range path[:len(path)-1] {
		next, ok := at[name].(map[string]any)
		if !ok {
			return fmt.Errorf("the patch %v does not apply to %v", op, v.state)
		}
		at = next
	}
	at[path[len(path)-1]] = op["value"]
	return nil
}

func (v *verifier) message(id, role, owner string) map[string]any {
	for _, m := range v.messages {
		if m["id"] == id {
			return m
		}
	}
	m := map[string]any{"id": id, "role": role}
	if owner != "" {
		m["subagentRunId"] = owner
	}
	v.messages = append(v.messages, m)
	return m
}

// reduce does what a client's reducer does.
func (v *verifier) reduce(p [3]string, e map[string]any, id, owner string) error {
	delta, _ := e["delta"].(string)
	switch p[1] {
	case "text":
		role, _ := e["role"].(string)
		m := v.message(id, role, owner)
		s, _ := m["content"].(string)
		m["content"] = s + delta
	case "reasoning":
		m := v.message(id, "reasoning", owner)
		s, _ := m["content"].(string)
		m["content"] = s + delta
	case "call":
		if p[0] == "open" {
			m := v.message(e["parentMessageId"].(string), "assistant", owner)
			calls, _ := m["toolCalls"].([]any)
			m["toolCalls"] = append(calls, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": e["toolCallName"], "arguments": ""}})
			return nil
		}
		for _, m := range v.messages {
			calls, _ := m["toolCalls"].([]any)
			for _, c := range calls {
				if f := c.(map[string]any); f["id"] == id && delta != "" {
					fn := f["function"].(map[string]any)
					fn["arguments"] = fn["arguments"].(string) + delta
				}
			}
		}
	}
	return nil
}

// same returns what a reader of the whole has, in a form that can be compared: the reducer's result.
func (v *verifier) same() string {
	type call struct{ ID, Name, Arguments string }
	var all []string
	for _, m := range v.messages {
		var calls []call
		list, _ := m["toolCalls"].([]any)
		for _, c := range list {
			f := c.(map[string]any)
			fn := f["function"].(map[string]any)
			calls = append(calls, call{f["id"].(string), fn["name"].(string), fn["arguments"].(string)})
		}
		content := m["content"]
		if content == nil {
			content = ""
		}
		all = append(all, fmt.Sprintf("%v %v %v %v", m["id"], m["role"], content, calls))
	}
	sort.Strings(all)
	return strings.Join(all, "\n") + fmt.Sprint(v.state) + v.outcome
}
