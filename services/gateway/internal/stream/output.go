package stream

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// Output collects what a stream sends and writes it in pieces. Only one goroutine uses it.
type Output struct {
	// Buf is what is not written yet.
	Buf []byte

	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	conn    net.Conn // after Detach
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

// Detach takes the connection from the server, after which the handler may return: Output writes the chunks of HTTP/1.1
// itself.
func (o *Output) Detach() (net.Conn, error) {
	conn, _, err := o.control.Hijack()
	if err != nil {
		return nil, err
	}
	o.w, o.control, o.conn, o.Buf = nil, nil, conn, nil
	return conn, nil
}

// keptBuffer is how large the buffer of an idle stream may be, in bytes.
const keptBuffer = 512

// Finish ends an answer that is complete.
func (o *Output) Finish() error {
	if o.conn == nil {
		return nil // the server does it
	}
	if err := o.conn.SetWriteDeadline(time.Now().Add(o.timeout)); err != nil { // that of the last write may be long ago
		return err
	}
	_, err := o.conn.Write([]byte("0\r\n\r\n"))
	return err
}

// Flush writes the collected output to the network, within the time of one write.
func (o *Output) Flush() error {
	if o.conn != nil {
		return o.chunk()
	}
	// Writers without deadlines, as in tests of handlers alone, ignore it.
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if len(o.Buf) > 0 {
		if _, err := o.w.Write(o.Buf); err != nil {
			return err
		}
		o.empty(4 * MaxBatch) // one large event must not use memory until the end of the stream
	}
	return o.control.Flush()
}

// chunk is Flush for a connection of its own.
func (o *Output) chunk() error {
	if len(o.Buf) == 0 {
		return nil
	}
	if err := o.conn.SetWriteDeadline(time.Now().Add(o.timeout)); err != nil {
		return err
	}
	size := append(strconv.AppendInt(make([]byte, 0, 24), int64(len(o.Buf)), 16), "\r\n"...)
	pieces := net.Buffers{size, append(o.Buf, "\r\n"...)}
	_, err := pieces.WriteTo(o.conn)
	o.empty(keptBuffer)
	return err
}

// empty forgets what was written, and its buffer if that is larger than most.
func (o *Output) empty(most int) {
	if cap(o.Buf) > most {
		o.Buf = nil
	}
	o.Buf = o.Buf[:0]
}

// Detached reports whether the connection was taken from the server.
func (o *Output) Detached() bool { return o.conn != nil }
