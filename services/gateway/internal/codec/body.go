// Package codec converts HTTP into messages and back: JSON bodies, query parameters, and the headers Accept,
// Content-Type and Last-Event-ID. All of its input is untrusted, and every error that it returns may be shown
// to clients.
package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/itemlimit"
)

// Body is a request's body with a limit. It keeps the error of reading it, because grpc-gateway's code keeps
// only the text of an error.
type Body struct {
	io.ReadCloser
	// Params has the fields that the path sets, which the body may repeat but not contradict.
	Params map[string]string

	announced int64 // what Content-Length says; -1: nothing
	limit     int64
	timeout   time.Duration
	control   *http.ResponseController
	err       error
}

// NewBody limits the body of r in bytes and in total time.
func NewBody(w http.ResponseWriter, r *http.Request, limit int64, timeout time.Duration) *Body {
	return &Body{
		ReadCloser: http.MaxBytesReader(w, r.Body, limit),
		announced:  r.ContentLength,
		limit:      limit, timeout: timeout, control: http.NewResponseController(w),
	}
}

// Err returns the error that Decode returned, nil after an empty body.
func (b *Body) Err() error { return b.err }

// Decode reads all of the body into m. For an empty body it returns io.EOF and does
// not change m.
func (b *Body) Decode(m proto.Message) error {
	err := b.decode(m)
	if !errors.Is(err, io.EOF) {
		b.err = err
	}
	return err
}

// Discard reads and drops a body, so that a stream can follow it.
func (b *Body) Discard() error {
	_, err := b.read()
	return err
}

// Buffered is a body that was read within its limits and checked. Marshaler decodes it.
type Buffered struct{ *bytes.Reader }

// Close implements io.Closer.
func (Buffered) Close() error { return nil }

// Bytes reads all of the body.
func (b *Body) Bytes() ([]byte, error) { return b.read() }

// Buffer reads all of the body and checks that it is a message like m, or empty. For grpc-gateway reads the body of a
// PATCH with a field mask twice: for the message, and for the fields that it sets.
func (b *Body) Buffer(m proto.Message) (Buffered, error) {
	data, err := b.read()
	data = itemlimit.CutJSON(data, m.ProtoReflect().Descriptor())
	if err == nil && len(bytes.TrimSpace(data)) > 0 {
		err = Unmarshal(data, m)
	}
	return Buffered{bytes.NewReader(data)}, err
}

func (b *Body) read() ([]byte, error) {
	if b.announced > b.limit {
		return nil, problem.BodyTooLarge(b.limit)
	}
	// Writers without deadlines, as in tests of handlers alone, ignore it.
	_ = b.control.SetReadDeadline(time.Now().Add(b.timeout))
	data, err := io.ReadAll(b.ReadCloser)
	_ = b.control.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, problem.BodyTooLarge(b.limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem.BodyTimeout(b.timeout)
	case err != nil:
		return nil, problem.BodyMalformed("", "it broke off")
	}
	return data, nil
}

func (b *Body) decode(m proto.Message) error {
	data, err := b.read()
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return io.EOF
	}
	if err := Unmarshal(data, m); err != nil {
		return err
	}
	return b.agree(m.ProtoReflect())
}

// agree refuses a body that names another resource than the path.
func (b *Body) agree(m protoreflect.Message) error {
	for name, want := range b.Params {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if f == nil || f.Kind() != protoreflect.StringKind {
			continue
		}
		if got := m.Get(f).String(); got != "" && got != want {
			return problem.BodyMalformed(name, fmt.Sprintf("%s is not the one in the path; leave it out", f.JSONName()))
		}
	}
	return nil
}

// Unmarshal reads one message from JSON. Unknown and repeated fields, and text after the message, are errors
// that name the position and, if possible, the field.
func Unmarshal(data []byte, m proto.Message) error {
	data = itemlimit.CutJSON(data, m.ProtoReflect().Descriptor())
	err := protojson.Unmarshal(data, m)
	if err == nil {
		return nil
	}
	return problem.BodyMalformed(explain(data, err.Error()))
}

// UnmarshalInput is Unmarshal for the n-th line of a body of lines, counted from 1.
func UnmarshalInput(n int, data []byte, m proto.Message) error {
	data = itemlimit.CutJSON(data, m.ProtoReflect().Descriptor())
	err := protojson.Unmarshal(data, m)
	if err == nil {
		return nil
	}
	field, what := explain(data, err.Error())
	return problem.BodyMalformed(field, fmt.Sprintf("input %d: %s", n, what))
}

var (
	// The blank after "proto:" may be a no-break space, because protobuf's error texts are not stable. So
	// these patterns only improve a message; a message that they do not match is shown unchanged.
	place  = regexp.MustCompile(`^proto:[\s\x{a0}]+(?:syntax error )?(?:\(line (\d+):(\d+)\): )?`)
	fields = []*regexp.Regexp{
		regexp.MustCompile(`^unknown field "([^"]*)"`),
		regexp.MustCompile(`^duplicate field "([^"]*)"`),
		regexp.MustCompile(`^invalid value for \w+ field (\w+):`),
		regexp.MustCompile(`^error parsing "([^"]*)"`),
	}
)

// explain splits protojson's error text into the wrong field, and the fault with its position.
func explain(data []byte, text string) (field, what string) {
	at := place.FindStringSubmatch(text)
	if at == nil {
		return "", text
	}
	what = text[len(at[0]):]
	if unfinished := what == io.ErrUnexpectedEOF.Error(); unfinished || strings.HasPrefix(what, "invalid escape code") {
		// protojson reports half of a surrogate pair as the end of the text, or
		// as an invalid escape.
		if field, what := loneSurrogate(data); what != "" {
			return field, what
		}
		if unfinished {
			return "", "it ends in the middle of its JSON"
		}
	}
	for _, f := range fields {
		if match := f.FindStringSubmatch(what); match != nil {
			field = match[1]
			break
		}
	}
	what = problem.Excerpt(what)
	if at[1] != "" {
		what = fmt.Sprintf("line %s, column %s: %s", at[1], at[2], what)
	}
	return field, what
}
