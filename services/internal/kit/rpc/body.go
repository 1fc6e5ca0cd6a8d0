package rpc

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Limits of what is read of a refused body, so that its client gets to read the answer.
const (
	maxDrain  = 32 << 20 // bytes
	drainTime = 5 * time.Second
	// maxHeld bounds an error that waits for the end of its handler, in bytes. Errors of this program are smaller.
	maxHeld = 128 << 10
)

// bodies looks after the bodies of HTTP/1 requests.
//
// A proxy and this server could disagree where a request ends, if it has a Content-Length beside a Transfer-Encoding, or
// is HTTP/1.0. net/http does not show the first, so every chunked request is the last one on its connection (RFC 9112,
// section 6.1).
//
// Closing a connection on which a body still arrives resets it, and its client may lose the answer. So a refused body is
// read on within limits.
type bodies struct{ next http.Handler }

// ServeHTTP implements http.Handler.
func (b bodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 {
		b.next.ServeHTTP(w, r)
		return
	}
	if r.ProtoMinor == 0 || len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
	if r.Body == nil || r.Body == http.NoBody {
		b.next.ServeHTTP(w, r)
		return
	}
	body, held := &readBody{ReadCloser: r.Body}, &heldError{ResponseWriter: w}
	r.Body = body
	b.next.ServeHTTP(held, r)
	if !held.holds() {
		return
	}
	held.release()
	if waits := r.Header.Get("Expect") != "" && !body.begun; waits || body.ended {
		return // the client sends no more
	}
	control := http.NewResponseController(w)
	if control.Flush() == nil && control.SetReadDeadline(time.Now().Add(drainTime)) == nil {
		_, _ = io.CopyN(io.Discard, body, maxDrain) // an error means that the client sends no more
	}
}

// readBody notes how far a body was read.
type readBody struct {
	io.ReadCloser
	begun, ended bool
}

// Read implements io.Reader.
func (b *readBody) Read(p []byte) (int, error) {
	b.begun = true
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

// heldError holds an error until its handler has returned. Then its length is known, and the client sees its end even
// while the server reads on.
type heldError struct {
	http.ResponseWriter
	status   int // of the error; 0: there is none yet
	text     []byte
	released bool // the answer is no error, or has gone out
}

// holds reports whether there is an error that has not gone out.
func (h *heldError) holds() bool { return h.status > 0 && !h.released }

// WriteHeader implements http.ResponseWriter.
func (h *heldError) WriteHeader(code int) {
	switch {
	case h.holds():
	case h.released, code < http.StatusBadRequest:
		h.released = h.released || code >= http.StatusOK
		h.ResponseWriter.WriteHeader(code)
	default:
		h.status = code
	}
}

// Write implements http.ResponseWriter.
func (h *heldError) Write(p []byte) (int, error) {
	if h.holds() && len(h.text)+len(p) <= maxHeld {
		h.text = append(h.text, p...)
		return len(p), nil
	}
	if h.holds() {
		h.pass()
	}
	h.released = true
	return h.ResponseWriter.Write(p)
}

// release sends the error, with its length.
func (h *heldError) release() {
	if h.Header().Get("Content-Length") == "" {
		h.Header().Set("Content-Length", strconv.Itoa(len(h.text)))
	}
	h.pass()
}

// pass sends what is held.
func (h *heldError) pass() {
	h.released = true
	h.ResponseWriter.WriteHeader(h.status)
	_, _ = h.ResponseWriter.Write(h.text) //nolint:gosec // the handler has set the type; an error means that the client has gone
	h.text = nil
}

// FlushError flushes an answer that is not held.
func (h *heldError) FlushError() error {
	if h.holds() {
		return nil
	}
	h.released = true
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker.
func (h *heldError) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if h.holds() {
		return nil, nil, errors.New("rpc: an error is held")
	}
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.released = h.released || err == nil
	return conn, rw, err
}

// Unwrap lets http.ResponseController find further methods of the server's writer.
func (h *heldError) Unwrap() http.ResponseWriter { return h.ResponseWriter }
