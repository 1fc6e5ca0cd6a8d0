package jsontext

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// AppendMessage appends m as JSON in one line: lowerCamelCase names, no fields with their default value. The same message
// gives the same bytes in every build.
func AppendMessage(dst []byte, m proto.Message) ([]byte, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return dst, err
	}
	return AppendLine(dst, data)
}

// AppendLine appends JSON in one line: without white space between its values, and with every character
// escaped at which a reader may split lines. Many readers split at U+2028, U+2029 and U+0085, which JSON and
// event streams allow unescaped.
func AppendLine(dst, data []byte) ([]byte, error) {
	line := bytes.NewBuffer(dst)
	if err := json.Compact(line, data); err != nil {
		return dst, err
	}
	whole := line.Bytes()
	return append(whole[:len(dst)], EscapeLineEnds(whole[len(dst):])...), nil
}

// EscapeLineEnds returns valid JSON with U+2028, U+2029 and U+0085 escaped. They occur only in strings.
func EscapeLineEnds(data []byte) []byte {
	for _, c := range [...]struct{ raw, escaped string }{{"\u2028", `\u2028`}, {"\u2029", `\u2029`}, {"\u0085", `\u0085`}} {
		if bytes.Contains(data, []byte(c.raw)) {
			data = bytes.ReplaceAll(data, []byte(c.raw), []byte(c.escaped))
		}
	}
	return data
}
