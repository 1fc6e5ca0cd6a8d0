package filename

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Show writes an encoded name so that all of it is visible. Each byte that is not text,
// and each byte of a character without a shape of its own (control characters, line
// separators, marks of direction, zero widths), becomes \x and two digits, as in `a\x0ab`.
// A backslash is written as \x5c only where it would be read as the beginning of such an
// escape. So no two names look the same, and all others are shown unchanged.
func Show(text string) string {
	return show(text, hidden)
}

// ShowBytes is Show that also escapes each byte of a character outside ASCII: it
// distinguishes names that look alike.
func ShowBytes(text string) string {
	return show(text, func(r rune) bool { return r >= utf8.RuneSelf || hidden(r) })
}

func show(text string, escape func(rune) bool) string {
	if !strings.Contains(text, `\x`) && !strings.ContainsFunc(text, escape) {
		return text
	}
	var b strings.Builder
	for at, r := range text {
		switch _, begins := escaped(text[at:]); {
		case Escapes(r):
			fmt.Fprintf(&b, `\x%02x`, r-base)
		case begins:
			b.WriteString(`\x5c`)
		case escape(r):
			for _, raw := range []byte(string(r)) {
				fmt.Fprintf(&b, `\x%02x`, raw)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character is invisible, or affects the display of its
// neighbors.
func hidden(r rune) bool {
	const blank = '\u2800' // a braille pattern without dots
	return !unicode.IsPrint(r) || r == blank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Parse reads a name in the form of Show, and encodes it.
func Parse(shown string) string {
	return Encode(parse(shown, `\`))
}

// ParsePattern is Parse for a glob, in which a backslash quotes the next character.
func ParsePattern(shown string) string {
	return Encode(parse(shown, `\\`))
}

func parse(shown, backslash string) string {
	if !strings.Contains(shown, `\x`) {
		return shown
	}
	var b strings.Builder
	for at := 0; at < len(shown); {
		raw, is := escaped(shown[at:])
		switch {
		case is && raw == '\\':
			b.WriteString(backslash)
			at += 4
		case is:
			b.WriteByte(raw)
			at += 4
		case len(backslash) > 1 && shown[at] == '\\' && at+1 < len(shown):
			b.WriteString(shown[at : at+2])
			at += 2
		default:
			b.WriteByte(shown[at])
			at++
		}
	}
	return b.String()
}

// escaped reports whether a text begins with an escape, and for which byte. A visible
// ASCII character other than the backslash has no escape.
func escaped(text string) (byte, bool) {
	if len(text) < 4 || text[0] != '\\' || text[1] != 'x' {
		return 0, false
	}
	high, low := strings.IndexByte(digits, text[2]), strings.IndexByte(digits, text[3])
	raw := byte(high<<4 | low)
	return raw, high >= 0 && low >= 0 && (raw < ' ' || raw > '~' || raw == '\\')
}

const digits = "0123456789abcdef"
