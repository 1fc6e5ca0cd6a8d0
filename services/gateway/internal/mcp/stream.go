package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// stream is an answer that is kept alive: a quiet event stream gets comments, and no write waits for a reader for
// ever. The SDK writes an event in one piece, so a comment never lands in one.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	stop    chan struct{}
	beats   sync.WaitGroup

	mu     sync.Mutex
	begun  bool
	events bool
	late   bool // an error of the SDK comes in an answer that has begun as a stream
	closed bool
	wrote  time.Time
}

func newStream(w http.ResponseWriter, heartbeat, timeout time.Duration) *stream {
	s := &stream{w: w, control: http.NewResponseController(w), timeout: timeout, stop: make(chan struct{}), wrote: time.Now()}
	s.beats.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
				s.beat(heartbeat)
			}
		}
	})
	return s
}

// close ends the heartbeat.
func (s *stream) close() {
	close(s.stop)
	s.beats.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	_ = s.control.SetWriteDeadline(time.Time{}) // writers without deadlines, as in tests of handlers alone, ignore it
}

// beat writes a comment if the stream is quiet.
func (s *stream) beat(heartbeat time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events && time.Since(s.wrote) >= heartbeat/2 {
		s.ping()
	}
}

// open begins the answer to a call that runs.
func (s *stream) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun && !s.closed && isStream(s.w.Header()) {
		s.begin(http.StatusOK)
		s.ping()
	}
}

func isStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// ping writes a comment, which clients ignore.
func (s *stream) ping() {
	s.deadline()
	if _, err := s.w.Write([]byte(": ping\n\n")); err == nil {
		_ = s.control.Flush()
	}
}

func (s *stream) deadline() {
	s.wrote = time.Now()
	_ = s.control.SetWriteDeadline(s.wrote.Add(s.timeout))
}

// Header implements http.ResponseWriter.
func (s *stream) Header() http.Header { return s.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (s *stream) WriteHeader(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = s.events && code >= http.StatusBadRequest
	s.begin(code)
}

func (s *stream) begin(code int) {
	if s.begun {
		return
	}
	s.begun = true
	h := s.w.Header()
	if s.events = isStream(h); s.events {
		h.Set("X-Accel-Buffering", "no")
	}
	h.Set("Cache-Control", "no-cache, no-store, no-transform") // the SDK allows storing
	s.w.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(http.StatusOK)
	s.deadline()
	out := digits(b)
	if s.late {
		out = fmt.Appendf(nil, "event: message\ndata: %s\n\n", out)
	}
	if _, err := s.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush implements http.Flusher.
func (s *stream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(http.StatusOK)
	_ = s.control.Flush()
}

type streamValue struct{}

// openAfter is how long a call runs before its answer begins. An error of a call that ends before has the HTTP status that
// the protocol wants for it.
const openAfter = time.Second

// opening begins the answer to the request of a context although its call still runs, because proxies cut a request without
// an answer, and that would cancel the call. The caller calls the result when the call has ended.
func opening(ctx context.Context) (ended func()) {
	s, ok := ctx.Value(streamValue{}).(*stream)
	if !ok {
		return func() {}
	}
	timer := time.AfterFunc(openAfter, s.open)
	return func() { timer.Stop() }
}
