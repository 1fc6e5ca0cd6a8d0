package prompt

import (
	"encoding/base64"
	"unicode/utf8"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

const hex = "0123456789abcdef"

// AppendString writes a JSON string. Like encoding/json, it replaces invalid UTF-8
// with U+FFFD. For the texts of ten thousand messages encoding/json takes many
// times as long.
func AppendString(buf []byte, s string) []byte {
	buf = append(buf, '"')
	plain := 0 // start of the part that is not written yet
	for i := 0; i < len(s); {
		b := s[i]
		if b >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				buf = append(append(buf, s[plain:i]...), "\ufffd"...)
				plain = i + 1
			}
			i += n
			continue
		}
		if b >= ' ' && b != '"' && b != '\\' {
			i++
			continue
		}
		buf = append(buf, s[plain:i]...)
		switch b {
		case '"', '\\':
			buf = append(buf, '\\', b)
		case '\n':
			buf = append(buf, '\\', 'n')
		case '\t':
			buf = append(buf, '\\', 't')
		case '\r':
			buf = append(buf, '\\', 'r')
		default:
			buf = append(buf, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
		i++
		plain = i
	}
	return append(append(buf, s[plain:]...), '"')
}

// Next begins the next element of a JSON list: it appends a comma unless the list
// just began.
func Next(buf []byte) []byte {
	if buf[len(buf)-1] == '[' {
		return buf
	}
	return append(buf, ',')
}

// AppendDataURL writes a JSON string with data as a URL of its own.
func AppendDataURL(buf []byte, mediaType string, data []byte) []byte {
	buf = append(buf, `"data:`...)
	buf = append(append(buf, mediaType...), ";base64,"...)
	return append(base64.StdEncoding.AppendEncode(buf, data), '"')
}

// Size returns about the length of the conversation in JSON.
func (c *Conversation) Size() int {
	n := len(c.System)
	for _, msg := range c.Messages {
		n += 64
		for _, b := range msg.Blocks {
			n += 128 + len(b.GetToolUse().GetArgumentsJson()) + len(b.GetThinking().GetText()) + len(b.GetProviderData().GetData()) + size(b.GetContent())
			for _, piece := range b.GetToolResult().GetContent() {
				n += size(piece)
			}
		}
	}
	return n + n/16
}

func size(c *commonv1.Content) int {
	return len(c.GetText().GetText()) + base64.StdEncoding.EncodedLen(len(c.GetImage().GetData())+len(c.GetDocument().GetData()))
}
