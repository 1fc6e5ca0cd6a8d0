package anthropic

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// plainDelta reads the event of a piece in the form in which the API writes it.
// There is one for each token, and reflection takes several times as long. Any
// other form is left to encoding/json. The event must be JSON.
func plainDelta(raw []byte) (index transport.Count, d delta, ok bool) {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"content_block_delta","index":`))
	if !ok {
		return 0, d, false
	}
	number, rest, ok := bytes.Cut(rest, []byte(`,"delta":{"type":"`))
	n, err := strconv.ParseUint(string(number), 10, 31)
	if !ok || err != nil {
		return 0, d, false
	}
	var text *string
	switch {
	case cut(&rest, `text_delta","text":`):
		d.Type, text = "text_delta", &d.Text
	case cut(&rest, `thinking_delta","thinking":`):
		d.Type, text = "thinking_delta", &d.Thinking
	case cut(&rest, `input_json_delta","partial_json":`):
		d.Type, text = "input_json_delta", &d.PartialJSON
	default:
		return 0, d, false
	}
	end := bytes.LastIndexByte(rest, '"')
	if end < 1 || rest[0] != '"' || !closes(rest[end+1:]) {
		return 0, d, false
	}
	return transport.Count(n), d, readString(rest[:end+1], text)
}

func cut(b *[]byte, prefix string) bool {
	rest, ok := bytes.CutPrefix(*b, []byte(prefix))
	*b = rest
	return ok
}

// closes reports whether b is two closing braces and spaces.
func closes(b []byte) bool {
	n := 0
	for _, c := range b {
		switch c {
		case '}':
			n++
		case ' ':
		default:
			return false
		}
	}
	return n == 2
}

// readString reads a string of JSON; false if it is more than that.
func readString(quoted []byte, into *string) bool {
	plain := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(plain, '\\') < 0 {
		if bytes.IndexByte(plain, '"') >= 0 {
			return false // fields follow the text
		}
		if utf8.Valid(plain) {
			*into = string(plain)
			return true
		}
	}
	return json.Unmarshal(quoted, into) == nil
}
