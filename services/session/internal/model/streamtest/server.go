package streamtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// Reply is the answer of a server, byte for byte.
type Reply struct {
	Status int    // 200 when 0
	Type   string // of the content; text/event-stream when empty
	Body   string
	Cut    bool // the connection breaks after the body
	Stay   bool // the connection stays open after the body, silent
	Piece  int  // the body is flushed after so many bytes; 0 is at once
}

// Serve starts a server that answers each request with reply's result for its
// body, and returns its URL. The server stops with the test.
func Serve(t testing.TB, reply func(body []byte) Reply) string {
	t.Helper()
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		write(w, reply(body), done)
	}))
	t.Cleanup(func() {
		close(done)
		s.Close()
	})
	return s.URL
}

func write(w http.ResponseWriter, reply Reply, done <-chan struct{}) {
	if reply.Type == "" {
		reply.Type = "text/event-stream"
	}
	w.Header().Set("Content-Type", reply.Type)
	w.WriteHeader(max(reply.Status, http.StatusOK))
	if reply.Piece == 0 {
		reply.Piece = max(1, len(reply.Body))
	}
	for piece := range slices.Chunk([]byte(reply.Body), reply.Piece) {
		_, _ = w.Write(piece)
		_ = http.NewResponseController(w).Flush()
	}
	if reply.Stay {
		<-done
	}
	if reply.Cut {
		panic(http.ErrAbortHandler)
	}
}
