package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// loneSurrogate finds the first \u escape that is one half of a surrogate pair without the other. JSON writes
// characters beyond U+FFFF as two such halves; a writer that cuts a text between them leaves an invalid half.
// It returns the path of the field, such as content[0].text, and the fault with its position; empty if there
// is none.
func loneSurrogate(data []byte) (field, what string) {
	at, escape := findLone(data)
	if at < 0 {
		return "", ""
	}
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	column := at - bytes.LastIndexByte(data[:at], '\n')
	return placeOf(data, int64(at)), fmt.Sprintf(
		`line %d, column %d: %s is half of a surrogate pair, which is no character; send both halves, such as \ud83d\ude00, or neither`, line, column, escape)
}

// findLone returns the position of the escape, and the escape.
func findLone(data []byte) (at int, escape string) {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		unit, ok := codeUnit(data[i:])
		switch {
		case !ok:
			i++ // past the escaped character, which may be a backslash
		case unit >= 0xD800 && unit < 0xDC00:
			if low, ok := codeUnit(data[i+6:]); !ok || low < 0xDC00 || low > 0xDFFF {
				return i, string(data[i : i+6])
			}
			i += 11
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return i, string(data[i : i+6])
		default:
			i += 5
		}
	}
	return -1, ""
}

// codeUnit reads the \u escape at the beginning of data.
func codeUnit(data []byte) (uint64, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return n, err == nil
}

// placeOf returns the path of the value, or name, that contains the byte at an offset. It returns "" for JSON
// that is invalid before it.
func placeOf(data []byte, offset int64) string {
	d := json.NewDecoder(bytes.NewReader(data))
	var path jsonPath
	for d.InputOffset() <= offset {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		if d.InputOffset() > offset {
			break
		}
		path.step(token)
	}
	return path.String()
}

// jsonPath is a path into JSON. An object's step is the last name, an array's the next index.
type jsonPath []*jsonStep

type jsonStep struct {
	array bool
	index int
	name  string
	value bool // a value comes next, not a name
}

func (p *jsonPath) step(token json.Token) {
	if d, ok := token.(json.Delim); ok && (d == '{' || d == '[') {
		*p = append(*p, &jsonStep{array: d == '['})
		return
	} else if ok {
		*p = (*p)[:len(*p)-1]
	}
	if len(*p) == 0 {
		return
	}
	top := (*p)[len(*p)-1]
	switch name, isText := token.(string); {
	case top.array:
		top.index++
	case !top.value && isText:
		top.name, top.value = name, true
	default:
		top.name, top.value = "", false
	}
}

// String formats the path as in errors.
func (p *jsonPath) String() string {
	var b strings.Builder
	for _, s := range *p {
		switch {
		case s.array:
			fmt.Fprintf(&b, "[%d]", s.index)
		case s.name != "":
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		}
	}
	return b.String()
}
