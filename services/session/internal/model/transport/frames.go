package transport

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// frameType is the media type of AWS's frames.
const frameType = "application/vnd.amazon.eventstream"

// frames reads AWS's frames as server-sent events. An event's frame carries the JSON of the model's own API; an
// exception and an error become an event named error.
// See https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html for the frame and
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html for its content.
type frames struct {
	io.Closer
	from    *bufio.Reader
	decoder eventstream.Decoder
	rest    []byte // of the current event
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		m, err := f.decoder.Decode(f.from, nil)
		if err != nil {
			return 0, err
		}
		if f.rest, err = event(m); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// event writes a frame as a server-sent event; nothing for a frame of another kind.
func event(m eventstream.Message) ([]byte, error) {
	kind := head(m, eventstreamapi.MessageTypeHeader)
	switch kind {
	case eventstreamapi.EventMessageType:
		var chunk struct{ Bytes []byte }
		if head(m, eventstreamapi.EventTypeHeader) != "chunk" {
			return nil, nil
		}
		if err := json.Unmarshal(m.Payload, &chunk); err != nil {
			return nil, fmt.Errorf("read a frame: %w", err)
		}
		return sse("", chunk.Bytes), nil
	case eventstreamapi.ExceptionMessageType:
		var told struct{ Message string }
		_ = json.Unmarshal(m.Payload, &told) // the exception's name says enough
		return failure(head(m, eventstreamapi.ExceptionTypeHeader), told.Message)
	case eventstreamapi.ErrorMessageType:
		return failure(head(m, eventstreamapi.ErrorCodeHeader), head(m, eventstreamapi.ErrorMessageHeader))
	}
	return nil, fmt.Errorf("a frame is of the kind %.40q", kind)
}

func head(m eventstream.Message, name string) string {
	if v := m.Headers.Get(name); v != nil {
		return v.String()
	}
	return ""
}

// failure writes an error in the form of the model's own API.
func failure(code, message string) ([]byte, error) {
	type told struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	data, err := json.Marshal(map[string]any{"type": "error", "error": told{code, message}})
	if err != nil {
		return nil, fmt.Errorf("write an error: %w", err)
	}
	return sse("error", data), nil
}

// sse writes an event. In JSON a line's end is only a blank.
func sse(name string, data []byte) []byte {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, data))
	b.WriteString("\n\n")
	return b.Bytes()
}
