// Package filename writes the names of files, which are any bytes, as text, and reads
// them back.
//
// A byte that is not part of valid UTF-8 becomes one private character, U+EF80 for 0x80
// up to U+EFFF for 0xFF: the range that the ConScript Unicode Registry keeps for such
// use. Where a name has one of these characters itself, each of its bytes is written so,
// too. So no two names are written alike, and every other name is written as it is.
package filename

import (
	"strings"
	"unicode/utf8"
)

const (
	base  = 0xEF00 // and the byte
	first = base + 0x80
	last  = base + 0xFF

	lead = 0xEE // the byte that each of these characters begins with in UTF-8
)

// Escapes says whether a character stands for a byte.
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

// odd is where a name has something first that is not written as it is; its length when
// there is no such thing.
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

// Decode reads what Encode wrote. Whatever Encode does not write is a name as it is: a rule
// for a path must not be passed by spelling the path in another way.
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
