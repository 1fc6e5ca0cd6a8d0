package mcp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestAnErrorKeepsItsStatusUntilTheAnswerHasBegun(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`
	for name, c := range map[string]struct {
		opened bool
		status int
		body   string
	}{
		"before": {false, http.StatusBadRequest, refusal},
		"after":  {true, http.StatusOK, ": ping\n\nevent: message\ndata: " + refusal + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			s := newStream(w, time.Hour, time.Minute)
			s.Header().Set("Content-Type", "text/event-stream") // as the SDK does when it takes a call
			if c.opened {
				s.open()
				s.open()
				if !w.Flushed || w.Code != http.StatusOK {
					t.Errorf("the answer has not begun: %d", w.Code)
				}
			}
			s.Header().Set("Content-Type", "application/json")
			s.WriteHeader(http.StatusBadRequest)
			if n, err := s.Write([]byte(refusal)); n != len(refusal) || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
			s.close()
			if w.Code != c.status || w.Body.String() != c.body {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		})
	}
}

func TestOnlyAStreamIsOpened(t *testing.T) {
	w := httptest.NewRecorder()
	s := newStream(w, time.Hour, time.Minute)
	s.open() // the SDK has not taken a call
	s.Header().Set("Content-Type", "text/event-stream")
	s.close()
	s.open() // its handler has returned
	if w.Flushed || w.Body.Len() > 0 {
		t.Errorf("wrote %q", w.Body)
	}
}
