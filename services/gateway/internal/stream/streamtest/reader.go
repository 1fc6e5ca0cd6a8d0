// Package streamtest reads server-sent events as a browser does, for tests.
package streamtest

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// Frame is one dispatched event, or one comment.
type Frame struct {
	// ID is the last id that the stream has set so far.
	ID string
	// Event is the event's name; by default "message".
	Event string
	// Data is the event's data.
	Data string
	// Comment is set instead of Event and Data.
	Comment string
}

// Reader parses a stream according to "9.2.6 Interpreting an event stream" of the HTML standard.
type Reader struct {
	in    *bufio.Reader
	id    string
	event string
	data  []string
	// Retry is the last retry field.
	Retry string
}

// NewReader reads from r.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReader(r)} }

// Next returns the next event or comment. At the end of the stream it returns io.EOF and drops an incomplete
// event.
func (r *Reader) Next() (Frame, error) {
	for {
		line, err := r.line()
		if err != nil {
			return Frame{}, err
		}
		if line == "" {
			if f, ok := r.dispatch(); ok {
				return f, nil
			}
			continue
		}
		if comment, ok := strings.CutPrefix(line, ":"); ok {
			return Frame{ID: r.id, Comment: strings.TrimPrefix(comment, " ")}, nil
		}
		r.field(line)
	}
}

func (r *Reader) dispatch() (Frame, bool) {
	f := Frame{ID: r.id, Event: r.event, Data: strings.Join(r.data, "\n")}
	complete := r.data != nil
	r.event, r.data = "", nil
	if f.Event == "" {
		f.Event = "message"
	}
	return f, complete
}

func (r *Reader) field(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "event":
		r.event = value
	case "data":
		r.data = append(r.data, value)
	case "id":
		if !strings.Contains(value, "\x00") {
			r.id = value
		}
	case "retry":
		r.Retry = value
	}
}

// line returns the next line, which ends with CR, LF or both.
func (r *Reader) line() (string, error) {
	var b strings.Builder
	for {
		c, err := r.in.ReadByte()
		switch {
		case err != nil:
			return "", err
		case c == '\n':
			return b.String(), nil
		case c == '\r':
			if next, err := r.in.Peek(1); err == nil && next[0] == '\n' {
				_, _ = r.in.Discard(1)
			}
			return b.String(), nil
		}
		b.WriteByte(c)
	}
}

// All returns the rest of the stream.
func (r *Reader) All() ([]Frame, error) {
	var all []Frame
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
}
