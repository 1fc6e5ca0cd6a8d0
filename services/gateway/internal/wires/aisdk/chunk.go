package aisdk

import (
	"bytes"
	"encoding/json"
	"strings"
)

// chunk is one piece of a UI message stream. Old clients refuse a field that their schema does not have, so a chunk
// has exactly the fields of its type.
type chunk struct {
	Type            string          `json:"type"`
	MessageID       string          `json:"messageId,omitempty"`
	ID              string          `json:"id,omitempty"`
	Delta           *string         `json:"delta,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	ToolName        string          `json:"toolName,omitempty"`
	Dynamic         bool            `json:"dynamic,omitempty"`
	InputTextDelta  *string         `json:"inputTextDelta,omitempty"`
	Input           json.RawMessage `json:"input,omitempty"`
	Output          json.RawMessage `json:"output,omitempty"`
	ErrorText       *string         `json:"errorText,omitempty"`
	ApprovalID      string          `json:"approvalId,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	Transient       bool            `json:"transient,omitempty"`
	FinishReason    string          `json:"finishReason,omitempty"`
	MessageMetadata json.RawMessage `json:"messageMetadata,omitempty"`
}

// done ends a stream.
const done = "data: [DONE]\n\n"

// content reports whether a chunk is what a model or a tool says, so that a client that has it must not keep it when
// the step begins anew.
func (c chunk) content() bool {
	return strings.HasPrefix(c.Type, "text-") || strings.HasPrefix(c.Type, "reasoning-") || strings.HasPrefix(c.Type, "tool-")
}

// value returns a value as JSON.
func value(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b) // it escapes the characters at which readers split lines
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// input returns arguments as JSON: as they are, or as text if they are none.
func input(arguments string) (raw json.RawMessage, valid bool) {
	if strings.TrimSpace(arguments) == "" {
		return json.RawMessage("{}"), true
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(arguments)) != nil {
		return value(arguments), false
	}
	return b.Bytes(), true
}

func text(s string) *string { return &s }
