// Package terminal shows events and errors to people. The output of models and
// tools is not trusted: it cannot move the cursor, change colors or titles, or
// turn the reading direction.
package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns text without escape sequences and without control characters
// other than newline and tab. Carriage returns are dropped, because a terminal
// overwrites the line after one; so are the characters that turn the direction
// of text, because they make it read otherwise than it is. Bytes that are not
// UTF-8 become U+FFFD.
func Clean(text string) string { return new(Cleaner).Clean(text) }

// Line is Clean on one line of at most width characters; 0 is any width.
func Line(text string, width int) string {
	text = strings.Join(strings.Fields(Clean(text)), " ")
	all := []rune(text)
	if width <= 0 || len(all) <= width {
		return text
	}
	return string(all[:max(width-3, 0)]) + "..."
}

// Exact returns text in which every character that Clean would drop is written
// as an escape: a person who judges the text must see all of it.
func Exact(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, string(utf8.RuneError)) {
		if hostile(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Cleaner is Clean for a text that comes in pieces: a sequence may begin in one
// and end in another. The zero value is ready.
type Cleaner struct{ in state }

// state is what the next character is part of.
type state int

const (
	plainText    state = iota
	escape             // after ESC
	intermediate       // after ESC and a character that asks for another
	control            // a control sequence, until its final character
	quoted             // a title, a link or another string, until its end
	quotedEscape       // after ESC within a string
)

// Clean cleans the next piece. A newline ends any sequence, so that one that
// never ends hides no more than a line.
func (c *Cleaner) Clean(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range strings.ToValidUTF8(text, string(utf8.RuneError)) {
		if c.shows(r) && !hostile(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shows reports whether a character is text, not part of a sequence.
func (c *Cleaner) shows(r rune) bool {
	if r == '\n' {
		c.in = plainText
		return true
	}
	if c.in == quoted || c.in == quotedEscape {
		c.in = afterQuoted(c.in, r)
		return false
	}
	if next, ok := introducer(r); ok {
		c.in = next
		return false
	}
	switch c.in {
	case escape:
		c.in = afterEscape(r)
		return false
	case intermediate, control:
		if r >= utf8.RuneSelf { // no part of a sequence: it is broken
			c.in = plainText
			return true
		}
		if c.in == control && r >= '@' || c.in == intermediate && r >= '0' {
			c.in = plainText
		}
		return false
	default:
		return true
	}
}

// introducer returns the state after a character that begins a sequence anywhere.
func introducer(r rune) (state, bool) {
	switch r {
	case '\x1b':
		return escape, true
	case '\u009b':
		return control, true
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f':
		return quoted, true
	}
	return plainText, false
}

func afterEscape(r rune) state {
	switch {
	case r == '[':
		return control
	case strings.ContainsRune("]PX^_", r):
		return quoted
	case r >= ' ' && r <= '/':
		return intermediate
	}
	return plainText
}

func afterQuoted(in state, r rune) state {
	switch {
	case r == '\a', r == '\u009c', in == quotedEscape && r == '\\':
		return plainText
	case r == '\x1b':
		return quotedEscape
	case in == quotedEscape:
		return afterEscape(r) // the escape ended the string and began another sequence
	}
	return quoted
}

func hostile(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
