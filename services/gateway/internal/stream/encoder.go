package stream

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/feed"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// Message is one piece of a stream: an event, or the position of the stream.
type Message interface {
	proto.Message
	GetEvent() *sessionv1.Event
	GetProgress() *sessionv1.Progress
}

// encoder appends the pieces of a stream in their wire format. An encoder belongs to one stream.
type encoder interface {
	contentType() string
	begin(dst []byte) []byte
	message(dst []byte, m Message) ([]byte, error)
	// shared appends an event whose form the stream shares with others.
	shared(dst []byte, e *feed.Entry) ([]byte, error)
	// heartbeat appends nothing if the format has no comments.
	heartbeat(dst []byte) []byte
	failure(dst []byte, st *status.Status) []byte
}

// ErrorEvent is the name of the frame that says why a stream breaks off. No event of a session has this name:
// a failure inside a turn is called "error".
const ErrorEvent = "stream.error"

// sse writes server-sent events.
type sse struct{ reconnect time.Duration }

func (sse) contentType() string { return codec.SSE }

func (e sse) begin(dst []byte) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, e.reconnect.Milliseconds(), 10)
	return append(dst, "\n\n"...)
}

func (e sse) message(dst []byte, m Message) ([]byte, error) {
	ev := m.GetEvent()
	if ev == nil && m.GetProgress() == nil {
		return dst, nil // the first event tells it, too
	}
	if ev == nil {
		// A comment, because clients ignore a frame without data, so that it cannot change their last id.
		dst = append(dst, ": progress "...)
		dst = strconv.AppendInt(dst, m.GetProgress().GetSeq(), 10)
		return append(dst, "\n\n"...), nil
	}
	data, err := jsontext.AppendMessage(nil, ev)
	if err != nil {
		return dst, err
	}
	return appendEvent(dst, ev, data), nil
}

func (sse) shared(dst []byte, e *feed.Entry) ([]byte, error) {
	data, err := e.Frame(codec.SSE, func(ev *sessionv1.Event, json []byte) []byte { return appendEvent(nil, ev, json) })
	return append(dst, data...), err
}

func appendEvent(dst []byte, ev *sessionv1.Event, json []byte) []byte {
	return AppendFrame(dst, strconv.FormatInt(ev.GetSeq(), 10), sessionv1.EventName(ev), json)
}

func (sse) heartbeat(dst []byte) []byte { return append(dst, ": ping\n\n"...) }

func (sse) failure(dst []byte, st *status.Status) []byte {
	return AppendFrame(dst, "", ErrorEvent, problem.JSON(st))
}

// AppendFrame appends one server-sent event. An empty id leaves the client's last id unchanged; an empty name
// makes the frame a "message". The frame stays one frame whatever the data contains: every line end in it
// begins a new line of data, and the client joins the lines by line feeds. JSON data comes from jsontext,
// which escapes the other characters at which readers may split. Line ends and NUL, which neither an id nor a
// name can contain, are removed from both.
func AppendFrame(dst []byte, id, name string, data []byte) []byte {
	if id != "" {
		dst = appendField(dst, "id: ", id)
	}
	if name != "" {
		dst = appendField(dst, "event: ", name)
	}
	for {
		end := bytes.IndexAny(data, "\r\n")
		if end < 0 {
			break
		}
		dst = append(append(append(dst, "data: "...), data[:end]...), '\n')
		if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
			end++
		}
		data = data[end+1:]
	}
	dst = append(append(dst, "data: "...), data...)
	return append(dst, "\n\n"...)
}

var fieldCleaner = strings.NewReplacer("\r", "", "\n", "", "\x00", "", "\u0085", "", "\u2028", "", "\u2029", "",
	"\v", "", "\f", "", "\x1c", "", "\x1d", "", "\x1e", "")

func appendField(dst []byte, field, value string) []byte {
	dst = append(dst, field...)
	return append(append(dst, fieldCleaner.Replace(value)...), '\n')
}

// ndjson writes one JSON object a line: {"result": …}, and {"error": …} as the last one of a stream that
// breaks off.
type ndjson struct{}

func (ndjson) contentType() string { return codec.NDJSON }

func (ndjson) begin(dst []byte) []byte { return dst }

func (ndjson) message(dst []byte, m Message) ([]byte, error) { return appendLine(dst, m) }

func (ndjson) shared(dst []byte, e *feed.Entry) ([]byte, error) {
	data, err := e.Frame(codec.NDJSON, func(_ *sessionv1.Event, json []byte) []byte {
		return append(append([]byte(`{"result":{"event":`), json...), "}}\n"...)
	})
	return append(dst, data...), err
}

func appendLine(dst []byte, m proto.Message) ([]byte, error) {
	data, err := jsontext.AppendMessage(nil, m)
	if err != nil {
		return dst, err
	}
	dst = append(append(dst, `{"result":`...), data...)
	return append(dst, "}\n"...), nil
}

func (ndjson) heartbeat(dst []byte) []byte { return dst }

func (ndjson) failure(dst []byte, st *status.Status) []byte {
	dst = append(append(dst, `{"error":`...), problem.JSON(st)...)
	return append(dst, "}\n"...)
}
