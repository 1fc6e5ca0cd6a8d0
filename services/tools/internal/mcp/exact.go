package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// schemaKey and outputKey are where exact puts the texts of a tool's schemas.
const (
	schemaKey = "dev.fairlead/inputSchema"
	outputKey = "dev.fairlead/outputSchema"
)

// exact returns a server's message with the exact text of what the SDK decodes into
// floating point: integers above 2^53 would change, and a schema would lose the order of
// its properties. The structured content becomes a string, and each tool gets the texts of
// its schemas in its metadata.
func exact(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"structuredContent"`)) && !bytes.Contains(message, []byte(`"inputSchema"`)) {
		return message
	}
	var response map[string]json.RawMessage
	var result map[string]json.RawMessage
	if json.Unmarshal(message, &response) != nil || json.Unmarshal(response["result"], &result) != nil {
		return message
	}
	if content, ok := result["structuredContent"]; ok && !bytes.Equal(bytes.TrimSpace(content), []byte("null")) {
		result["structuredContent"] = quoted(content)
	}
	var tools []map[string]json.RawMessage
	if json.Unmarshal(result["tools"], &tools) == nil {
		for _, t := range tools {
			if schema, ok := t["inputSchema"]; ok {
				meta := map[string]json.RawMessage{schemaKey: quoted(schema)}
				if output, ok := t["outputSchema"]; ok {
					meta[outputKey] = quoted(output)
				}
				t["_meta"] = marshal(meta)
			}
		}
		result["tools"] = marshal(tools)
	}
	response["result"] = marshal(result)
	return marshal(response)
}

func quoted(text json.RawMessage) json.RawMessage { return marshal(string(text)) }

// marshal encodes what was decoded before, or a string, which cannot fail.
func marshal(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// errLong refuses a message.
var errLong = fmt.Errorf("the server's message is longer than %d bytes", maxMessage)

// lines reads a stream whose messages are lines, or parts of lines after a mark, and makes
// them exact.
type lines struct {
	io.Closer
	from *bufio.Reader
	mark []byte // `data:` in a stream of events
	seen func(message []byte)
	left []byte
}

// newLines returns a reader that shows each message before it hands it on.
func newLines(from io.ReadCloser, mark string, seen func(message []byte)) *lines {
	return &lines{Closer: from, from: bufio.NewReader(from), mark: []byte(mark), seen: seen}
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		line, err := l.line()
		if len(line) == 0 {
			return 0, err
		}
		if message, ok := bytes.CutPrefix(line, l.mark); ok {
			l.seen(message)
			if changed := exact(message); len(changed) != len(message) {
				line = append(append(append([]byte(nil), l.mark...), changed...), '\n')
			}
		}
		l.left = line
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// line returns the next line with its end, or the rest before the end of the stream.
func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, errLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
