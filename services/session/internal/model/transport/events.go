package transport

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// Event is one event of a stream.
type Event struct {
	Name string // of the `event:` field; most often empty
	Data []byte // valid until the next call of Next; never blank, unless the name is `error`
	JSON bool   // Data is JSON
}

// Events reads the stream of an answer: server-sent events, and the variants that
// servers send instead. An event ends at a blank line, or where its data is a
// complete JSON object or [DONE], because many servers leave out the blank line. A
// body that begins with a brace or a bracket is read as a sequence of JSON values,
// and a line that begins with a brace as data. Text without any field is one event
// named `error`; so is a web page.
type Events struct {
	r       *bufio.Reader
	line    []byte
	afterCR bool
	json    *json.Decoder // of a body that is JSON
	started bool
	some    bool   // a field, a comment or an event came
	loose   []byte // text outside of fields, bounded
	name    string
	named   string // the last name: most events of a stream have the same
	data    []byte
	lines   int // of data
}

const (
	// maxLoose bounds the text that is kept to explain a stream without events.
	maxLoose = 64 << 10
	// maxLines bounds how often growing data is parsed: data with more lines ends
	// at a blank line.
	maxLines = 64
)

// NewEvents reads events from r.
func NewEvents(r io.Reader) *Events { return &Events{r: bufio.NewReader(r)} }

// Next returns the next event. The error is io.EOF at the end of the stream and
// io.ErrUnexpectedEOF where the end cuts an event.
func (e *Events) Next() (Event, error) {
	if !e.started {
		e.started = true
		if err := e.begin(); err != nil {
			return Event{}, err
		}
	}
	if e.json != nil {
		return e.value()
	}
	for {
		err := e.readLine()
		if err != nil && (err != io.EOF || len(e.line) == 0) { //nolint:errorlint // readers return io.EOF itself
			return e.last(err)
		}
		if complete, valid := e.take(); complete {
			return e.flush(valid), nil
		}
	}
}

// begin skips a byte order mark and blanks, and looks at the first byte: a field
// never begins with a brace or a bracket.
func (e *Events) begin() error {
	if mark, err := e.r.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = e.r.Discard(3)
	}
	for {
		b, err := e.r.ReadByte()
		if err != nil {
			return err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		}
		_ = e.r.UnreadByte()
		switch b {
		case '{', '[':
			e.json = json.NewDecoder(e.r)
		case '<': // a web page, whose lines may look like fields
			e.loose, err = io.ReadAll(io.LimitReader(e.r, maxLoose))
			e.r.Reset(bytes.NewReader(nil))
		}
		return err
	}
}

// value returns the next value of a body that is JSON.
func (e *Events) value() (Event, error) {
	var raw json.RawMessage
	if err := e.json.Decode(&raw); err != nil {
		return Event{}, err
	}
	return Event{Data: raw, JSON: true}, nil
}

// readLine reads a line, which ends with \n, \r\n or \r, into e.line.
func (e *Events) readLine() error {
	e.line = e.line[:0]
	for {
		if _, err := e.r.Peek(1); err != nil {
			return err
		}
		b, _ := e.r.Peek(e.r.Buffered())
		if e.afterCR && b[0] == '\n' {
			e.afterCR = false
			_, _ = e.r.Discard(1)
			continue
		}
		e.afterCR = false
		end := lineEnd(b)
		if end < 0 {
			e.line = append(e.line, b...)
			_, _ = e.r.Discard(len(b))
			continue
		}
		e.line = append(e.line, b[:end]...)
		e.afterCR = b[end] == '\r'
		_, _ = e.r.Discard(end + 1)
		return nil
	}
}

// lineEnd returns the index of the first line end, or -1.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		b = b[:end]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// take handles the current line. It reports whether an event is complete, and
// whether its data is known to be JSON.
func (e *Events) take() (complete, valid bool) {
	if len(e.line) == 0 {
		data := bytes.TrimSpace(e.data)
		if len(data) > 0 || e.name == "error" {
			return true, json.Valid(data)
		}
		e.name, e.data, e.lines = "", e.data[:0], 0
		return false, false
	}
	field, value, _ := bytes.Cut(e.line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		if value = bytes.TrimSpace(value); string(value) != e.named {
			e.named = string(value)
		}
		e.some, e.name = true, e.named
	case "data":
		e.some = true
		return e.add(value)
	case "", "id", "retry":
		e.some = true
	default:
		if e.line[0] == '{' && json.Valid(e.line) {
			e.some = true
			return e.add(e.line)
		}
		if len(e.loose) < maxLoose {
			e.loose = append(append(e.loose, e.line...), '\n')
		}
	}
	return false, false
}

// add appends a line of data and reports as take does.
func (e *Events) add(line []byte) (complete, valid bool) {
	if len(e.data) > 0 {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, line...)
	e.lines++
	data := bytes.TrimSpace(e.data)
	if len(data) == 0 || e.lines > maxLines {
		return false, false
	}
	valid = data[len(data)-1] == '}' && json.Valid(data)
	return valid || string(data) == "[DONE]", valid
}

func (e *Events) flush(valid bool) Event {
	ev := Event{Name: e.name, Data: bytes.TrimSpace(e.data), JSON: valid}
	e.name, e.data, e.lines, e.some = "", e.data[:0], 0, true
	return ev
}

// last returns the rest at the end of the stream.
func (e *Events) last(err error) (Event, error) {
	data := bytes.TrimSpace(e.data)
	switch {
	case err != io.EOF: //nolint:errorlint // readers return io.EOF itself
		return Event{}, err
	case len(data) > 0 && (data[0] == '{' || data[0] == '['):
		return Event{}, io.ErrUnexpectedEOF
	case len(data) > 0 || e.name == "error":
		return e.flush(json.Valid(data)), nil
	case !e.some && len(e.loose) > 0:
		e.some, e.name, e.data = true, "error", append(e.data[:0], e.loose...)
		return e.flush(false), nil
	}
	return Event{}, io.EOF
}
