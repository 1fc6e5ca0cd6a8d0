package a2a

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// States of a task.
const (
	stateSubmitted     = "TASK_STATE_SUBMITTED"
	stateWorking       = "TASK_STATE_WORKING"
	stateCompleted     = "TASK_STATE_COMPLETED"
	stateFailed        = "TASK_STATE_FAILED"
	stateCanceled      = "TASK_STATE_CANCELED"
	stateInputRequired = "TASK_STATE_INPUT_REQUIRED"
	stateRejected      = "TASK_STATE_REJECTED"
	stateAuthRequired  = "TASK_STATE_AUTH_REQUIRED"
)

// terminal reports whether a task in a state has ended.
func terminal(state string) bool {
	return state == stateCompleted || state == stateFailed || state == stateCanceled || state == stateRejected
}

// interrupted reports whether a task in a state waits for its client.
func interrupted(state string) bool { return state == stateInputRequired || state == stateAuthRequired }

// Roles of messages.
const roleUser, roleAgent = "ROLE_USER", "ROLE_AGENT"

// object is JSON.
type object = map[string]any

// task is a Task of the protocol.
type task struct {
	ID        string     `json:"id"`
	ContextID string     `json:"contextId"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts,omitempty"`
	History   []message  `json:"history,omitempty"`
	Metadata  object     `json:"metadata,omitempty"`
}

// status is a TaskStatus.
type status struct {
	State     string   `json:"state"`
	Message   *message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp,omitempty"`
}

// message is a Message. Members of a client's that are not here are ignored.
type message struct {
	MessageID string                     `json:"messageId"`
	ContextID string                     `json:"contextId,omitempty"`
	TaskID    string                     `json:"taskId,omitempty"`
	Role      string                     `json:"role"`
	Parts     []part                     `json:"parts"`
	Metadata  map[string]json.RawMessage `json:"metadata,omitempty"`
}

// part is a Part: exactly one of text, raw, url and data is set.
type part struct {
	Text      *string         `json:"text,omitempty"`
	Raw       *string         `json:"raw,omitempty"`
	URL       *string         `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
}

func textPart(s string) part { return part{Text: &s} }

// dataPart returns a part with JSON.
func dataPart(v any) part {
	b, err := json.Marshal(v)
	if err != nil {
		return textPart(err.Error()) // what is passed here can be marshaled
	}
	return part{Data: b, MediaType: "application/json"}
}

// artifact is an Artifact.
type artifact struct {
	ID       string `json:"artifactId"`
	Name     string `json:"name,omitempty"`
	Parts    []part `json:"parts"`
	Metadata object `json:"metadata,omitempty"`
}

// statusUpdate is a TaskStatusUpdateEvent.
type statusUpdate struct {
	TaskID    string `json:"taskId"`
	ContextID string `json:"contextId"`
	Status    status `json:"status"`
	Metadata  object `json:"metadata,omitempty"`
}

// artifactUpdate is a TaskArtifactUpdateEvent.
type artifactUpdate struct {
	TaskID    string   `json:"taskId"`
	ContextID string   `json:"contextId"`
	Artifact  artifact `json:"artifact"`
	Append    bool     `json:"append,omitempty"`
	LastChunk bool     `json:"lastChunk,omitempty"`
}

// update is a StreamResponse: one of its members is set.
type update struct {
	Task     *task           `json:"task,omitempty"`
	Status   *statusUpdate   `json:"statusUpdate,omitempty"`
	Artifact *artifactUpdate `json:"artifactUpdate,omitempty"`
}

// stamp formats a time as the protocol does; "" without one.
func stamp(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().UTC().Format("2006-01-02T15:04:05.000Z")
}

// parseStamp reads a time of a client.
func parseStamp(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, s) }
