package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// schemaKey and outputKey are where exact puts the texts of a tool's schemas.
	schemaKey = "dev.fairlead/inputSchema"
	outputKey = "dev.fairlead/outputSchema"
	// faultKey is where exact says what it left out of a list.
	faultKey = "dev.fairlead/fault"
)

// exact returns a server's message with the exact text of what the SDK decodes into
// floating point: integers above 2^53 would change, and a schema would lose the order of
// its properties. The structured content becomes a string, and each tool gets the texts of
// its schemas in its metadata.
func exact(message []byte) []byte {
	if !slices.ContainsFunc(exactWords, func(word []byte) bool { return bytes.Contains(message, word) }) {
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
	leaveOut(result)
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

// exactWords are in the messages that exact changes.
var exactWords = [][]byte{
	[]byte(`"structuredContent"`), []byte(`"inputSchema"`), []byte(`"tools"`), []byte(`"resources"`), []byte(`"resourceTemplates"`), []byte(`"prompts"`),
}

// lists are the lists of servers, and what the SDK decodes their entries into.
var lists = []struct {
	key   string
	entry func() any
}{
	{"tools", func() any { return &mcp.Tool{} }}, {"resources", func() any { return &mcp.Resource{} }},
	{"resourceTemplates", func() any { return &mcp.ResourceTemplate{} }}, {"prompts", func() any { return &mcp.Prompt{} }},
}

// leaveOut takes the entries out of a list that the SDK cannot decode, because it would refuse the whole list. The
// list's metadata says how many there were and what is wrong with the first.
func leaveOut(result map[string]json.RawMessage) {
	for _, l := range lists {
		var all, good []json.RawMessage
		if json.Unmarshal(result[l.key], &all) != nil {
			continue
		}
		fault := ""
		for _, raw := range all {
			err := json.Unmarshal(raw, l.entry())
			if err == nil && (len(raw) == 0 || raw[0] != '{') {
				err = errors.New("it is not an object")
			}
			if err == nil {
				good = append(good, raw)
			} else if fault == "" {
				fault = fmt.Sprintf("%v: %s", err, cut(valid(string(raw)), 100))
			}
		}
		if len(good) == len(all) {
			continue
		}
		result[l.key] = marshal(append([]json.RawMessage{}, good...))
		meta := map[string]json.RawMessage{}
		_ = json.Unmarshal(result["_meta"], &meta) // without metadata there is nothing to keep
		meta[faultKey] = marshal(fmt.Sprintf("%d of its %s cannot be read and are left out: %s", len(all)-len(good), l.key, fault))
		result["_meta"] = marshal(meta)
	}
	var cursor string
	if next, has := result["nextCursor"]; has && json.Unmarshal(next, &cursor) != nil {
		delete(result, "nextCursor")
	}
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
