// Package modeltest serves fake model providers on loopback: they use the real
// wire formats (Anthropic's Messages, OpenAI's Chat Completions and Responses), enforce the
// rules of the real providers, and answer according to a script. The package is
// not internal, because tests of other modules run whole servers against it; it
// imports nothing of this module.
package modeltest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Key is the key that the fake providers accept.
const Key = "test-key-5f1c"

// maxBody bounds a request, as the real providers do.
const maxBody = 32 << 20

// Step is one answer, or one failure.
type Step struct {
	// The answer: thinking, redacted thinking, text in pieces, tool calls.
	Thinking, Redacted string
	Text               []string
	Calls              []Call
	// Phase of the text, in the Responses API.
	Phase string
	// StopReason in Anthropic's words; found from Calls when empty.
	StopReason string
	Usage      Usage
	// Delay before each piece.
	Delay time.Duration

	// Status other than 0 refuses the request with an error of ErrorType,
	// ErrorCode and ErrorMessage, and with Header.
	Status                             int
	ErrorType, ErrorCode, ErrorMessage string
	Header                             map[string]string
	// After other than 0 breaks the answer after that many pieces, in the way
	// of Break. A negative one breaks it before the first.
	After int
	Break Break

	// OpenAI selects the habits of a server; the Messages API ignores it.
	OpenAI Habits
}

// Break is how an answer breaks.
type Break int

// Ways to break an answer.
const (
	Cut    Break = iota // the connection is reset
	End                 // the answer ends in order, but too early
	Fail                // an error event with ErrorType and ErrorMessage
	Silent              // nothing more comes until the client leaves
	HTML                // not a stream at all but a web page
)

// Call is a tool call. Input is sent as it is, in pieces of ten bytes.
type Call struct{ ID, Name, Input string }

// Usage in tokens; Input excludes tokens from the cache.
type Usage struct{ Input, Output, CacheRead, CacheWrite, Thinking int64 }

// Habits are differences of servers with Chat Completions. Some of them are also
// those of the Responses API: WholeCalls, SameIDs, Interleave, Comments, Refusal.
type Habits struct {
	WholeCalls  bool   // each call in one piece
	NoIndex     bool   // calls have no index
	RepeatName  bool   // each piece of a call has its name
	EmptyIDs    bool   // calls have empty ids
	SameIDs     bool   // the calls of every answer have the same ids
	Interleave  bool   // pieces of several calls alternate
	Reasoning   string // the field of reasoning; reasoning_content when empty
	NoDone      bool   // no [DONE] at the end
	Comments    bool   // comments between the pieces
	WrongFinish bool   // finish_reason is stop even with calls
	Refusal     bool   // text is sent as refusal
}

// Script returns the answer to a request. It is called for one request at a
// time.
type Script func(r Request) Step

// Sequence plays the steps in order, one for each request, and the last one for
// all further requests.
func Sequence(steps ...Step) Script {
	n := 0
	return func(Request) Step {
		n++
		return steps[min(n, len(steps))-1]
	}
}

// Server is a running fake provider.
type Server struct {
	// URL is the base URL to configure.
	URL string

	http   *httptest.Server
	done   chan struct{}
	script Script

	mu       sync.Mutex
	requests []Request
	refused  []string
}

// Anthropic starts a provider of the Messages API. It stops with the test.
func Anthropic(t testing.TB, script Script) *Server {
	s := start(t, "POST /v1/messages", script, serveMessages)
	s.URL = s.http.URL
	return s
}

// OpenAI starts a provider of the Chat Completions API. It stops with the test.
func OpenAI(t testing.TB, script Script) *Server {
	s := start(t, "POST /v1/chat/completions", script, serveChat)
	s.URL = s.http.URL + "/v1"
	return s
}

func start(t testing.TB, pattern string, script Script, serve func(*Server, http.ResponseWriter, *http.Request, []byte)) *Server {
	t.Helper()
	s := &Server{script: script, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "request too large", http.StatusRequestEntityTooLarge)
			return
		}
		serve(s, w, r, body)
	})
	s.http = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// Close ends all answers and stops the server. A test's end calls it too.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.mu.Unlock()
	s.http.Close()
}

// Requests returns the accepted requests, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Refused returns why requests were refused for breaking the rules; tests check
// that it is empty.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refused...)
}

func (s *Server) refuse(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, reason)
}

// keep stores the whole request. A number beyond float64 is only in Raw.
func (r *Request) keep(body []byte) error {
	r.Raw = body
	err := json.Unmarshal(body, &r.Body)
	var form *json.UnmarshalTypeError
	if errors.As(err, &form) {
		return nil
	}
	return err
}

// next records a request and asks the script.
func (s *Server) next(r Request) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	return s.script(r)
}

// Request is a client's request, in terms that both formats share.
type Request struct {
	Header http.Header
	// Query is that of the URL, as it was sent.
	Query string
	// Body is the whole request, its numbers as float64. Raw is the same as it was sent.
	Body map[string]any
	Raw  []byte
	// Model, System and Tools (names) as they were sent.
	Model, System string
	Tools         []string
	// UserText is the last text of the user, LastResult the text of the last
	// tool result.
	UserText, LastResult string
	// Step counts the model's answers since that text, including this one.
	Step int
}

// Messages returns the messages of the body.
func (r Request) Messages() []map[string]any {
	list, _ := r.Body["messages"].([]any)
	var out []map[string]any
	for _, m := range list {
		if m, ok := m.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// brokenError ends a handler whose answer was broken as the script says.
type brokenError struct{}

func (brokenError) Error() string { return "broken as the script says" }

// stream writes the pieces of an answer and breaks it where the step says.
type stream struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	step   Step
	pieces int
	fail   func(*stream) // writes an error event
}

func (st *stream) open() {
	if st.step.After != 0 && st.step.Break == HTML {
		st.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(st.w, "<html>nothing here</html>")
		panic(brokenError{})
	}
	st.w.Header().Set("Content-Type", "text/event-stream")
	st.w.WriteHeader(http.StatusOK)
	st.flush()
	if st.step.After < 0 {
		st.snap()
	}
}

// piece runs write for one piece of content, after the delay.
func (st *stream) piece(write func()) {
	if st.step.After > 0 && st.pieces >= st.step.After {
		st.snap()
	}
	st.pieces++
	if st.step.Delay > 0 {
		t := time.NewTimer(st.step.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-st.r.Context().Done():
			panic(brokenError{})
		case <-st.server.done:
			panic(brokenError{})
		}
	}
	write()
	st.flush()
}

// ended breaks an answer that was to break after more pieces than it has.
func (st *stream) ended() {
	if st.step.After > 0 {
		st.snap()
	}
}

func (st *stream) snap() {
	switch st.step.Break {
	case Cut:
		panic(http.ErrAbortHandler)
	case Fail:
		st.fail(st)
		st.flush()
	case Silent:
		select {
		case <-st.r.Context().Done():
		case <-st.server.done:
		}
	case End, HTML:
	}
	panic(brokenError{})
}

func (st *stream) flush() { _ = http.NewResponseController(st.w).Flush() }

// run runs the handler of a stream until its end or its break.
func (st *stream) run(handle func(*stream)) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(brokenError); !ok {
				panic(p)
			}
		}
	}()
	handle(st)
}

// pieces cuts s into pieces of ten bytes.
func pieces(s string) []string {
	var out []string
	for len(s) > 10 {
		out = append(out, s[:10])
		s = s[10:]
	}
	return append(out, s)
}

func writeJSON(w http.ResponseWriter, status int, header map[string]string, v any) {
	w.Header().Set("Content-Type", "application/json")
	for k, h := range header {
		w.Header().Set(k, h)
	}
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler) // The client has gone.
	}
}
