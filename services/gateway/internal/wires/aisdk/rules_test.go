package aisdk

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// fields are those that the strict clients of version 5 and 6 take; the first ones are required, those after "?" are not.
var fields = map[string]string{
	"start": "? messageId messageMetadata", "start-step": "?", "finish-step": "?",
	"text-start": "id ?", "text-delta": "id delta ?", "text-end": "id ?",
	"reasoning-start": "id ?", "reasoning-delta": "id delta ?", "reasoning-end": "id ?",
	"tool-input-start":      "toolCallId toolName ? dynamic",
	"tool-input-delta":      "toolCallId inputTextDelta ?",
	"tool-input-available":  "toolCallId toolName input ? dynamic",
	"tool-output-available": "toolCallId output ? dynamic preliminary",
	"tool-output-error":     "toolCallId errorText ? dynamic",
	"tool-approval-request": "toolCallId approvalId ?",
	"tool-output-denied":    "toolCallId ?",
	"message-metadata":      "messageMetadata ?",
	"finish":                "? finishReason messageMetadata", "abort": "?", "error": "errorText ?",
}

var since6 = []string{"tool-approval-request", "tool-output-denied"}

// strict is a client that refuses what breaks a rule of the protocol.
type strict struct {
	form        Form
	begun, over bool
	step        bool
	parts       map[string]bool
	calls       map[string]bool // whether each has its input
	streaming   map[string]bool
	lastStep    []string // the states of the calls of the last step
	state       map[string]string
}

func newStrict(f Form) *strict {
	return &strict{form: f, parts: map[string]bool{}, calls: map[string]bool{}, streaming: map[string]bool{}, state: map[string]string{}}
}

func (s *strict) schema(c chunk, given map[string]json.RawMessage) error {
	spec, ok := fields[c.Type]
	if strings.HasPrefix(c.Type, "data-") {
		spec, ok = "data ? id transient", true
	}
	if !ok {
		return fmt.Errorf("the type %s is not known", c.Type)
	}
	if s.form.Version == 5 && slices.Contains(since6, c.Type) {
		return fmt.Errorf("version 5 does not know %s", c.Type)
	}
	required, optional, _ := strings.Cut(spec, "?")
	for _, f := range strings.Fields(required) {
		if _, ok := given[f]; !ok {
			return fmt.Errorf("%s lacks %s", c.Type, f)
		}
	}
	for f, v := range given {
		if f != "type" && !slices.Contains(strings.Fields(required), f) && !slices.Contains(strings.Fields(optional), f) {
			return fmt.Errorf("%s must not have %s", c.Type, f)
		}
		if string(v) == "null" && f != "output" && f != "input" && f != "data" {
			return fmt.Errorf("%s of %s is null", f, c.Type)
		}
	}
	if strings.HasPrefix(c.Type, "tool-") && strings.Contains(spec, "dynamic") && c.Dynamic == s.form.Typed {
		return fmt.Errorf("dynamic of %s is not the same throughout", c.Type)
	}
	return nil
}

// take takes a chunk as it goes over the network.
func (s *strict) take(raw []byte) error {
	var c chunk
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return err
	}
	if err := s.schema(c, given); err != nil {
		return err
	}
	switch {
	case s.over:
		return fmt.Errorf("%s comes after the end", c.Type)
	case s.begun == (c.Type == "start"):
		return fmt.Errorf("start does not come first and once: %s", c.Type)
	case c.Type == "start" && c.MessageID == "":
		return fmt.Errorf("start has no messageId")
	}
	s.begun = true
	switch {
	case strings.HasPrefix(c.Type, "text-"), strings.HasPrefix(c.Type, "reasoning-"):
		return s.said(c)
	case strings.HasPrefix(c.Type, "tool-"):
		return s.call(c)
	}
	switch c.Type {
	case "start-step":
		if s.step {
			return fmt.Errorf("a step is open")
		}
		s.step, s.lastStep = true, nil
	case "finish-step":
		if !s.step {
			return fmt.Errorf("no step is open")
		}
		if len(s.parts) > 0 {
			return fmt.Errorf("a step ends with open parts")
		}
		s.step = false
	case "finish", "abort", "error":
		s.over = true
		return s.end(c)
	}
	return nil
}

func (s *strict) said(c chunk) error {
	kind, what, _ := strings.Cut(c.Type, "-")
	key := kind + c.ID
	switch {
	case !s.step:
		return fmt.Errorf("%s outside of a step", c.Type)
	case (what == "start") == s.parts[key]:
		return fmt.Errorf("%s of %s out of order", c.Type, c.ID)
	case what == "end":
		delete(s.parts, key)
	default:
		s.parts[key] = true
	}
	return nil
}

func (s *strict) call(c chunk) error {
	shown, known := s.calls[c.ToolCallID]
	if !s.step {
		return fmt.Errorf("%s outside of a step", c.Type)
	}
	if !slices.Contains(s.lastStep, c.ToolCallID) {
		s.lastStep = append(s.lastStep, c.ToolCallID)
	}
	s.state[c.ToolCallID] = c.Type
	switch c.Type {
	case "tool-input-start":
		if known {
			return fmt.Errorf("the call %s begins twice", c.ToolCallID)
		}
		s.calls[c.ToolCallID], s.streaming[c.ToolCallID] = false, true
	case "tool-input-delta":
		if !s.streaming[c.ToolCallID] || shown {
			return fmt.Errorf("tool-input-delta without tool-input-start")
		}
	case "tool-input-available":
		if shown {
			return fmt.Errorf("the input of %s comes twice", c.ToolCallID)
		}
		s.calls[c.ToolCallID] = true
	default:
		if !shown {
			return fmt.Errorf("no tool invocation found for %s", c.Type)
		}
	}
	return nil
}

// end refuses an end that makes applications ask again: a last step of finished calls alone.
func (s *strict) end(c chunk) error {
	if s.step || len(s.parts) > 0 {
		return fmt.Errorf("the message ends with an open step or part")
	}
	if c.Type == "error" || len(s.lastStep) == 0 {
		return nil
	}
	for _, id := range s.lastStep {
		if s.state[id] != "tool-output-available" && s.state[id] != "tool-output-error" {
			return nil
		}
	}
	return fmt.Errorf("the last step has finished calls alone")
}
