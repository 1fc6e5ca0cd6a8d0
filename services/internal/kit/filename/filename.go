// Package filename writes the names of files, which are any bytes, as text, and reads
// them back.
//
// A byte that is not part of valid UTF-8 becomes one private character, U+EF80 for 0x80
// up to U+EFFF for 0xFF: the range that the ConScript Unicode Registry reserves for this
// use. If a name contains one of these characters itself, each of its bytes is encoded
// so, too. So no two names have the same encoding, and every other name stays unchanged.
package filename

import (
	"strings"
	"unicode/utf8"
)

const (
	base  = 0xEF00 // and the byte
	first = base + 0x80
	last  = base + 0xFF

	lead = 0xEE // the first byte of each of these characters in UTF-8
)

// Escapes reports whether a character stands for a byte.
func Escapes(r rune) bool { return r >= first && r <= last }

// Encode writes a name, or a path, as valid UTF-8.
func Encode(name string) string {
	at := odd(name)
	if at == len(name) {
		return name
	}
	var b strings.Builder
	b.Grow(len(name) + 2*utf8.UTFMax)
	for at < len(name) {
		b.WriteString(name[:at])
		_, size := utf8.DecodeRuneInString(name[at:])
		for _, raw := range []byte(name[at : at+size]) {
			b.WriteRune(base + rune(raw))
		}
		name = name[at+size:]
		at = odd(name)
	}
	b.WriteString(name)
	return b.String()
}

// odd returns the index of the first part of a name that must be encoded, or its length
// if none must.
func odd(name string) int {
	if strings.IndexByte(name, lead) < 0 && utf8.ValidString(name) {
		return len(name)
	}
	for at := 0; at < len(name); {
		r, size := utf8.DecodeRuneInString(name[at:])
		if r == utf8.RuneError && size == 1 || Escapes(r) {
			return at
		}
		at += size
	}
	return len(name)
}

// Decode reads the output of Encode. It leaves any other text unchanged: a different
// spelling of a path must not bypass a rule for the path.
func Decode(text string) string {
	if strings.IndexByte(text, lead) < 0 {
		return text
	}
	b := make([]byte, 0, len(text))
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if Escapes(r) {
			b = append(b, byte(r-base))
		} else {
			b = append(b, text[at:at+size]...)
		}
		at += size
	}
	if name := string(b); Encode(name) == text {
		return name
	}
	return text
}
