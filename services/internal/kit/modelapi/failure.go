package modelapi

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Retry is what a client is told about repeating a request.
type Retry int

// What a client is told; by default the status decides.
const (
	ByStatus Retry = iota
	Always
	Never
)

// Failure is an error, before it has the form of an API.
type Failure struct {
	Status int
	// Code is OpenAI's code of the error; empty: the one of the status.
	Code    string
	Message string
	// Param is the parameter that is wrong, in OpenAI's errors; empty: none is named.
	Param string
	Retry Retry
	// After is the wait that the client is told; zero: none.
	After time.Duration
}

// anthropicTypes and openAITypes are the types of errors by their status.
var (
	anthropicTypes = map[int]string{
		http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
		http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
		http.StatusMethodNotAllowed: "invalid_request_error", http.StatusRequestEntityTooLarge: "request_too_large",
		http.StatusTooManyRequests: "rate_limit_error", http.StatusGatewayTimeout: "timeout_error", Overloaded: "overloaded_error",
	}
	openAITypes = map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
		http.StatusTooManyRequests: "rate_limit_error",
	}
	openAICodes = map[int]string{http.StatusUnauthorized: "invalid_api_key", http.StatusTooManyRequests: "rate_limit_exceeded"}
)

// Overloaded is the status of Anthropic's API when it has too much to do.
const Overloaded = 529

func (f Form) kind(status int) string {
	if f == Anthropic {
		if t, ok := anthropicTypes[status]; ok {
			return t
		}
		if status < http.StatusInternalServerError {
			return "invalid_request_error"
		}
		return "api_error"
	}
	if t, ok := openAITypes[status]; ok {
		return t
	}
	if status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "server_error"
}

// Error returns the error as JSON, in one line.
func (f Form) Error(e Failure, requestID string) []byte {
	var v any
	if f == Anthropic {
		v = struct {
			Type      string `json:"type"`
			Error     any    `json:"error"`
			RequestID string `json:"request_id,omitempty"`
		}{"error", struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		}{f.kind(e.Status), e.Message}, requestID}
	} else {
		v = map[string]any{"error": map[string]any{"message": e.Message, "type": f.kind(e.Status), "param": e.param(), "code": e.code()}}
	}
	b, err := json.Marshal(v)
	if err != nil { // strings cannot fail
		return []byte("{}")
	}
	return b
}

// code returns OpenAI's code; null for most errors.
func (e Failure) code() any {
	if e.Code != "" {
		return e.Code
	}
	if c, ok := openAICodes[e.Status]; ok {
		return c
	}
	return nil
}

func (e Failure) param() any {
	if e.Param == "" {
		return nil
	}
	return e.Param
}

// RequestID is the header in which the SDKs look for the id of a request.
func (f Form) RequestID() string {
	if f == Anthropic {
		return "Request-Id"
	}
	return "X-Request-Id"
}

// Write answers a request with an error. Nothing may have been written before.
func (f Form) Write(w http.ResponseWriter, e Failure, requestID string) {
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "application/json")
	h.Set(f.RequestID(), requestID)
	if e.After > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(max(1, math.Ceil(e.After.Seconds()))), 10))
	}
	switch e.Retry {
	case Always:
		h.Set("X-Should-Retry", "true")
	case Never:
		h.Set("X-Should-Retry", "false")
	case ByStatus:
		if final(e.Status) {
			h.Set("X-Should-Retry", "false")
		}
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(f.Error(e, requestID)) // an error here means that the client has gone
}

// final reports whether the same request fails again with a status. The SDKs know that, but Claude Code asks again for a
// minute after a 401 unless the answer says so.
func final(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	case http.StatusNotImplemented:
		return true
	default:
		return status < http.StatusInternalServerError
	}
}
