package stream

import (
	"net/http"
	"time"
)

// Output collects what a stream sends and writes it in pieces. Only one goroutine uses it.
type Output struct {
	// Buf is what is not written yet.
	Buf []byte

	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// NewOutput returns an Output whose writes wait for a reader no longer than timeout.
func NewOutput(w http.ResponseWriter, timeout time.Duration) *Output {
	return &Output{w: w, control: http.NewResponseController(w), timeout: timeout}
}

// MaxBatch bounds the collected output, in bytes, while messages are ready.
const MaxBatch = 16 << 10

// Begin sends the headers of a stream. No cache and no proxy may keep or collect its events.
func (o *Output) Begin(contentType string) {
	h := o.w.Header()
	h.Set("Content-Type", contentType)
	// A compressing proxy may delay events.
	h.Set("Cache-Control", "no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // proxies must not collect events
	o.w.WriteHeader(http.StatusOK)
}

// Flush writes the collected output to the network, within the time of one write.
func (o *Output) Flush() error {
	// Writers without deadlines, as in tests of handlers alone, ignore it.
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if len(o.Buf) > 0 {
		if _, err := o.w.Write(o.Buf); err != nil {
			return err
		}
		if cap(o.Buf) > 4*MaxBatch { // one large event must not use memory until the end of the stream
			o.Buf = nil
		}
		o.Buf = o.Buf[:0]
	}
	return o.control.Flush()
}
