// Package transcript is the file that a session is exported to: lines of JSON.
//
//	{"type":"fairlead.session","version":1}
//	{"type":"session","session":{…}}
//	{"type":"turn","turn":{…}}             each turn, in the order of acceptance
//	{"type":"message","message":{…}}       each message of the tree, in any order
//	{"type":"event","event":{…}}           the log, in order
//	{"type":"end","turns":1,"messages":2,"events":9,"sha256":"…"}
//
// The objects are those of the API, as protobuf's JSON. The sum is of all bytes
// before the last line, so a file that was cut off or damaged is found out before
// anything of it is believed. It is no signature: who changes a file can make a
// new sum, so everything else is checked as what a stranger wrote.
package transcript

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Types of lines.
const (
	typeHeader  = "fairlead.session"
	typeSession = "session"
	typeTurn    = "turn"
	typeMessage = "message"
	typeEvent   = "event"
	typeEnd     = "end"
)

const version = 1

// Limits of the input.
const (
	// maxObject is the size of the largest object, in protobuf's form: the API's
	// limit of a response.
	maxObject = rpc.MaxMessage
	// maxLine leaves room for what JSON adds to an object, in bytes.
	maxLine = 4 * maxObject
	// maxEnd is the length of the longest last line.
	maxEnd = 512
	// maxNames bounds the turns and the messages, whose names are kept in memory.
	maxNames = 500_000
	// maxSeq leaves room for future sequence numbers.
	maxSeq = 1 << 52
)

// Error is a fault of a file. Its text is for the sender of the file.
type Error struct {
	Line int // counted from 1; 0: the whole file
	What string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

func wrong(line int, format string, args ...any) error {
	return &Error{Line: line, What: fmt.Sprintf(format, args...)}
}

// envelope is a line.
type envelope struct {
	Type    string          `json:"type"`
	Version int             `json:"version,omitempty"`
	Session json.RawMessage `json:"session,omitempty"`
	Turn    json.RawMessage `json:"turn,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
	Event   json.RawMessage `json:"event,omitempty"`
}

// end is the last line.
type end struct {
	Type     string `json:"type"`
	Turns    int64  `json:"turns"`
	Messages int64  `json:"messages"`
	Events   int64  `json:"events"`
	SHA256   string `json:"sha256"`
}

// Writer writes a transcript: a session first, then turns, messages and events,
// then Close. It is used by one goroutine.
type Writer struct {
	to   *bufio.Writer
	sum  hash.Hash
	end  end
	line bytes.Buffer
}

// NewWriter begins a transcript. Its output is buffered until Close.
func NewWriter(to io.Writer, s *sessionv1.Session) (*Writer, error) {
	w := &Writer{to: bufio.NewWriterSize(to, 64<<10), sum: sha256.New(), end: end{Type: typeEnd}}
	fmt.Fprintf(&w.line, "{%q:%q,%q:%d}\n", "type", typeHeader, "version", version)
	return w, errors.Join(w.flush(), w.object(typeSession, s))
}

// Turn writes a turn.
func (w *Writer) Turn(t *sessionv1.Turn) error {
	w.end.Turns++
	return w.object(typeTurn, t)
}

// Message writes a message.
func (w *Writer) Message(m *sessionv1.Message) error {
	w.end.Messages++
	return w.object(typeMessage, m)
}

// Event writes an event.
func (w *Writer) Event(e *sessionv1.Event) error {
	w.end.Events++
	return w.object(typeEvent, e)
}

func (w *Writer) object(kind string, m proto.Message) error {
	data, err := jsontext.AppendMessage(nil, m)
	if err != nil {
		return fmt.Errorf("write a %s: %w", kind, err)
	}
	fmt.Fprintf(&w.line, "{%q:%q,%q:%s}\n", "type", kind, kind, data)
	return w.flush()
}

func (w *Writer) flush() error {
	_, _ = w.sum.Write(w.line.Bytes())
	_, err := w.line.WriteTo(w.to)
	return err
}

// Close writes the last line.
func (w *Writer) Close() error {
	w.end.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	last, err := json.Marshal(w.end)
	if err != nil {
		return err
	}
	_, err = w.to.Write(append(last, '\n'))
	return errors.Join(err, w.to.Flush())
}

// record is the content of a line: one of these.
type record struct {
	session *sessionv1.Session
	turn    *sessionv1.Turn
	message *sessionv1.Message
	event   *sessionv1.Event
}

// parse reads a line after the first.
func parse(n int, raw []byte) (record, error) {
	var e envelope
	if err := strict(raw, &e); err != nil {
		return record{}, wrong(n, "it is not a line of an export: %s", excerpt(err.Error()))
	}
	var r record
	var data json.RawMessage
	var m proto.Message
	switch e.Type {
	case typeSession:
		r.session = &sessionv1.Session{}
		data, m = e.Session, r.session
	case typeTurn:
		r.turn = &sessionv1.Turn{}
		data, m = e.Turn, r.turn
	case typeMessage:
		r.message = &sessionv1.Message{}
		data, m = e.Message, r.message
	case typeEvent:
		r.event = &sessionv1.Event{}
		data, m = e.Event, r.event
	default:
		return r, wrong(n, "there is no type %q", excerpt(e.Type))
	}
	if len(data) == 0 {
		return r, wrong(n, "the %s is missing", e.Type)
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return r, wrong(n, "the %s cannot be read; it may be of a newer version: %s", e.Type, excerpt(err.Error()))
	}
	if size := proto.Size(m); size > maxObject {
		return r, wrong(n, "the %s has %d bytes, more than %d", e.Type, size, maxObject)
	}
	return r, nil
}

// strict reads one JSON object without unknown fields.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// excerpt shortens text of a file for an error.
func excerpt(s string) string {
	const most = 200
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
