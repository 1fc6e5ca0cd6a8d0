package codec

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/auth"
)

// Patient reads a body whose sender may be slow, but may not stop. It takes nothing more once the sender's credential
// has ended.
type Patient struct {
	ctx     context.Context //nolint:containedctx // lives as long as one request
	from    io.Reader
	control *http.ResponseController
	timeout time.Duration
	ended   bool
}

// NewPatient returns a reader of the body of r that waits for each piece up to timeout.
func NewPatient(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Patient {
	return &Patient{ctx: r.Context(), from: r.Body, control: http.NewResponseController(w), timeout: timeout}
}

// Ended reports whether the body has ended, not only its reading.
func (p *Patient) Ended() bool { return p.ended }

// Read implements io.Reader.
func (p *Patient) Read(b []byte) (int, error) {
	// Writers without deadlines, as in tests of handlers alone, ignore it.
	_ = p.control.SetReadDeadline(time.Now().Add(p.timeout))
	n, err := p.from.Read(b)
	if ended := auth.Ended(p.ctx); ended != nil {
		return 0, ended
	}
	if errors.Is(err, io.EOF) {
		p.ended = true
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Fill reads until buf is full or from ends. Its error is io.EOF only after a good end: that of io.ReadFull would not
// tell a source that breaks off from one that ends in the middle of buf.
func Fill(from io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var more int
		more, err = from.Read(buf[n:])
		n += more
	}
	return n, err
}
