package store

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds a text column, in bytes.
const maxText = 1 << 10

// Text makes a model's text fit for a column of every backend: Postgres accepts neither
// NUL nor invalid UTF-8. Control characters except line breaks and tabs are escaped as in
// Go, and text beyond 1 KiB is cut off.
func Text(s string) string {
	var b strings.Builder
	for i, r := range s {
		if b.Len() >= maxText {
			b.WriteString("…")
			break
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		case unicode.IsControl(r) && r != '\n' && r != '\t':
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
