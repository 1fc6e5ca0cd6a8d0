package builtin

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxOutputChars is how much of a command's output the model sees.
const maxOutputChars = 30000

// sideBytes has room for half of that, however wide the characters are.
const sideBytes = maxOutputChars / 2 * utf8.UTFMax

// output keeps the beginning and the end of a command's output, in bounded
// memory.
type output struct {
	head  []byte
	tail  []byte // the last sideBytes, and up to as many before them
	total int64  // bytes
	chars int64  // bytes that begin a character
}

// Write adds output. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.total += int64(len(p))
	for _, b := range p {
		if utf8.RuneStart(b) {
			o.chars++
		}
	}
	n := min(len(p), sideBytes-len(o.head))
	o.head = append(o.head, p[:n]...)
	o.tail = append(o.tail, p[n:]...)
	if len(o.tail) > 2*sideBytes {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-sideBytes:]...)
	}
	return len(p), nil
}

// String returns the output for the model: cut in the middle, with a note.
func (o *output) String() string {
	if int64(len(o.head)+len(o.tail)) == o.total {
		whole := []rune(strings.ToValidUTF8(string(o.head)+string(o.tail), "\uFFFD"))
		if len(whole) <= maxOutputChars {
			return string(whole)
		}
		return cut(whole[:maxOutputChars/2], whole[len(whole)-maxOutputChars/2:], int64(len(whole)-maxOutputChars))
	}
	head := []rune(strings.ToValidUTF8(string(o.head), "\uFFFD"))
	tail := []rune(strings.ToValidUTF8(string(o.tail), "\uFFFD"))
	head = head[:min(len(head), maxOutputChars/2)]
	tail = tail[max(0, len(tail)-maxOutputChars/2):]
	return cut(head, tail, max(1, o.chars-int64(len(head)+len(tail))))
}

func cut(head, tail []rune, omitted int64) string {
	return fmt.Sprintf("%s\n\n... [%d characters cut] ...\n\n%s", string(head), omitted, string(tail))
}
