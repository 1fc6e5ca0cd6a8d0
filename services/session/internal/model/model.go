// Package model streams answers from language models. It declares what a
// provider promises; the providers are in the packages below it. Only a
// provider's own package imports its SDK.
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Model streams answers.
type Model interface {
	// Stream sends one request and calls emit for every piece of the answer, in
	// order, from the calling goroutine. It retries only a request whose form the
	// provider refuses. The answer counts only when Stream returns without an error;
	// then the pieces add up to it. An error of emit ends the stream and is returned
	// unchanged; a cancelled ctx ends it with ctx's error. All other errors are
	// *Error.
	Stream(ctx context.Context, r Request, emit func(Delta) error) (*Response, error)
}

// Request is a request to a model.
type Request struct {
	// Model is the provider's own name of the model.
	Model string
	// System is the system prompt.
	System string
	// Messages is the conversation; the first is a user's. Every tool use has
	// its result in the next user message, before any other block there. The
	// provider's package leaves out opaque data of other providers.
	Messages []*sessionv1.Message
	// Tools that the model may ask for, in a stable order.
	Tools []Tool
	// MaxOutputTokens bounds the answer; 0 means the model's own limit.
	MaxOutputTokens int64
	// ThinkingTokens bounds the thinking before the answer; 0 means none.
	ThinkingTokens int64
	// Temperature and TopP say how the model chooses; nil: the provider's own.
	Temperature, TopP *float64
	// Step is the number of the step in its turn, from 1. Only the scripted
	// provider uses Step and Attempt.
	Step, Attempt int
	// Wishes are those of a client of the model proxy.
	Wishes Wishes
}

// Tool is a tool that the model may ask for.
type Tool struct {
	Name, Description string
	InputSchema       json.RawMessage
	// Strict asks the provider to hold the arguments of each call to the schema.
	Strict bool
}

// Schema returns the input schema. A tool without one takes any object; a strict tool takes an empty one, because
// providers refuse an open schema there.
func (t Tool) Schema() json.RawMessage {
	switch {
	case len(t.InputSchema) > 0:
		return t.InputSchema
	case t.Strict:
		return json.RawMessage(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)
	}
	return json.RawMessage(`{"type":"object"}`)
}

// AppendSchema writes the input schema.
func (t Tool) AppendSchema(buf []byte) ([]byte, error) {
	b := bytes.NewBuffer(buf)
	if err := json.Compact(b, t.Schema()); err != nil {
		return nil, fmt.Errorf("the input schema of the tool %s is not JSON: %w", t.Name, err)
	}
	return b.Bytes(), nil
}

// DeltaKind is the kind of a piece of an answer.
type DeltaKind int

// Kinds of pieces. Blocks do not interleave: each starts, grows and ends before
// the next one starts.
const (
	TextStart DeltaKind = iota
	TextDelta
	TextEnd
	ThinkingStart
	ThinkingDelta
	ThinkingEnd
	ToolUseStart // ToolName, ProviderCallID
	ToolUseDelta // Text is JSON text to append
	ToolUseEnd
)

// Delta is a piece of an answer.
type Delta struct {
	Kind                     DeltaKind
	Block                    int // the index in Response.Blocks
	Text                     string
	ToolName, ProviderCallID string
	// Data is the provider's own of the block that ends; nil if there is none, or it is not
	// known yet.
	Data *sessionv1.ProviderData
}

// Response is a whole answer.
type Response struct {
	// Blocks of the answer. A tool use has its provider's call id and no call id
	// yet, and its arguments as the model wrote them, `{}` if it wrote none.
	Blocks []*sessionv1.Block
	// StopReason is `end_turn`, `tool_use`, `max_tokens`, `stop_sequence` or
	// `refusal`.
	StopReason string
	// Usage without cost. A provider's own package estimates missing and
	// impossible values.
	Usage *sessionv1.Usage
	// Warning tells people about an odd answer; most often it is empty.
	Warning string
	// ID is the provider's id of the answer; may be empty.
	ID string
}

// ErrorKind is the kind of a failure.
type ErrorKind int

// Kinds of errors.
const (
	Unavailable    ErrorKind = iota // could not be reached, 408, 409, 429, 5xx, overloaded, broke midway
	Authentication                  // 401, 403: the key is refused
	Refused                         // any other 4xx: the request is refused
	ContextFull                     // the conversation is longer than the model's context
	Billing                         // 402, spending limit, quota used up: a retry does not help
)

// Error is a failure of a model's provider. Its text is fit for people and
// contains no secret and no part of the conversation.
type Error struct {
	Kind    ErrorKind
	Status  int // HTTP status; 0 when there was none
	Message string
	// ProviderText are the provider's own words, which Message quotes.
	ProviderText string
	// RequestID is the provider's id of the request, for its support; may be empty.
	RequestID string
	// Named are the blocks of the request that the provider names as the reason.
	Named []*sessionv1.Block
	// RetryAfter is the wait that the provider requested; 0 without a request.
	RetryAfter time.Duration
	// Midway says that the stream had begun.
	Midway bool
	// Malformed says that the stream did not follow the API. A server that does so twice does so each time.
	Malformed bool
	Err       error
}

// Error describes the failure.
func (e *Error) Error() string {
	var known []string
	if e.Status != 0 {
		known = append(known, fmt.Sprintf("HTTP %d", e.Status))
	}
	if e.RequestID != "" {
		known = append(known, "request "+e.RequestID)
	}
	if len(known) == 0 {
		return e.Message
	}
	return e.Message + " (" + strings.Join(known, ", ") + ")"
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool { return e.Kind == Unavailable }

// Wishes are what a request may ask for beyond what turns do. A provider leaves out what it does not have.
type Wishes struct {
	ToolChoice    ToolChoice
	StopSequences []string
	// Format is the form of an answer that is JSON; without a schema the answer is text.
	Format Format
	// Effort is how much a reasoning model thinks, in OpenAI's words; empty: as configured.
	Effort string
}

// Format is the form of an answer that is JSON.
type Format struct {
	// Name and Description tell the model what the answer is; both may be empty.
	Name        string
	Description string
	Schema      json.RawMessage
	// Strict asks the provider to hold the answer to the schema.
	Strict bool
}

// ToolChoice says which tools the model calls.
type ToolChoice struct {
	Mode ToolMode
	Name string // of the tool, for ToolNamed
	// Single allows at most one call in an answer.
	Single bool
}

// ToolMode is whether the model calls tools.
type ToolMode int

// Modes of calling tools.
const (
	ToolAuto  ToolMode = iota // the model decides
	ToolNone                  // it calls none
	ToolAny                   // it calls some tool
	ToolNamed                 // it calls the named one
)
