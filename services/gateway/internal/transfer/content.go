package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// version is what is known of a file before its data.
type version struct {
	name, mediaType, etag string
	size                  int64
	modified              time.Time
}

// opener opens a file at an offset; a limit of zero means to its end. next returns io.EOF after the last
// piece.
type opener func(ctx context.Context, offset, limit int64) (v version, next func() ([]byte, error), err error)

// mostRanges is how many ranges one request may name: each opens the file.
const mostRanges = 16

// download answers with a file, or the ranges of it that the request wants.
func (s *Server) download(w http.ResponseWriter, r *http.Request, open opener) error {
	if strings.Count(r.Header.Get("Range"), ",") >= mostRanges {
		return problem.BadRange(fmt.Sprintf("names more than %d ranges", mostRanges))
	}
	c := &content{ctx: r.Context(), open: open, control: http.NewResponseController(w), timeout: s.WriteTimeout}
	defer c.close()
	limit := int64(0)
	if r.Method == http.MethodHead || r.Header.Get("Range") != "" {
		limit = 1 // the data comes from the place that is wanted
	}
	if err := c.at(0, limit); err != nil { //nolint:contextcheck // the content has the request's
		return err
	}
	if limit > 0 {
		c.close()
	}
	h := w.Header()
	h.Set("Content-Type", c.mediaType)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": c.name}))
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox") // no page of our origin
	h.Set("ETag", `"`+c.etag+`"`)
	http.ServeContent(&refusing{ResponseWriter: w}, r, "", c.modified, c)
	if c.failed != nil {
		s.Log.WarnContext(r.Context(), "a download was cut off", "route", r.Pattern, "error", c.failed)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// content is a file that is opened where it is read.
type content struct {
	version
	ctx     context.Context //nolint:containedctx // lives as long as one request
	open    opener
	control *http.ResponseController
	timeout time.Duration

	position  int64
	next      func() ([]byte, error) // nil: the file is not open at the position
	cancel    context.CancelFunc
	remaining []byte
	failed    error
}

// at opens the file at an offset.
func (c *content) at(offset, limit int64) error {
	c.close()
	ctx, cancel := context.WithCancel(c.ctx)
	v, next, err := c.open(ctx, offset, limit)
	if err == nil && c.etag != "" && v.etag != c.etag {
		err = errors.New("the file changed while it was read")
	}
	if err != nil {
		cancel()
		return err
	}
	c.version, c.next, c.cancel, c.position = v, next, cancel, offset
	return nil
}

func (c *content) close() {
	if c.cancel != nil {
		c.cancel()
	}
	c.next, c.cancel, c.remaining = nil, nil, nil
}

// Seek implements io.Seeker.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	to := offset
	switch whence {
	case io.SeekCurrent:
		to += c.position
	case io.SeekEnd:
		to += c.size
	}
	if to < 0 {
		return 0, errors.New("seek before the beginning of a file")
	}
	if to == c.size && whence == io.SeekEnd { // http.ServeContent finds out the size
		return to, nil
	}
	if to != c.position {
		c.close()
	}
	c.position = to
	return to, nil
}

// Read implements io.Reader.
func (c *content) Read(b []byte) (int, error) {
	if c.position >= c.size {
		return 0, io.EOF
	}
	n, err := c.read(b)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		c.failed = err
	}
	return n, err
}

func (c *content) read(b []byte) (int, error) {
	if c.next == nil {
		if err := c.at(c.position, 0); err != nil {
			return 0, err
		}
	}
	for len(c.remaining) == 0 {
		piece, err := c.next()
		if err != nil {
			return 0, err
		}
		c.remaining = piece
	}
	// Writers without deadlines, as in tests of handlers alone, ignore it.
	_ = c.control.SetWriteDeadline(time.Now().Add(c.timeout))
	n := copy(b, c.remaining)
	c.remaining = c.remaining[n:]
	c.position += int64(n)
	return n, nil
}

// refusing answers as all other requests do where http.ServeContent refuses a request.
type refusing struct {
	http.ResponseWriter
	done bool
}

// WriteHeader implements http.ResponseWriter.
func (w *refusing) WriteHeader(code int) {
	switch code {
	case http.StatusRequestedRangeNotSatisfiable:
		w.done = true
		problem.Write(w.ResponseWriter, problem.RangeNotSatisfiable())
	case http.StatusPreconditionFailed:
		w.done = true
		problem.Write(w.ResponseWriter, problem.Changed())
	default:
		w.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (w *refusing) Write(b []byte) (int, error) {
	if w.done {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find further methods of the server's writer.
func (w *refusing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// mediaType returns the media type for a file's name.
func mediaType(name string) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}
