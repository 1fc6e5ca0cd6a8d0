package files

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// likeness is a way in which two texts may be the same. It returns the rune to compare, or -1 for a rune that does
// not count.
type likeness struct {
	differs string
	fold    func(r rune) rune
}

// likenesses are the ways in which models misquote a text, the strictest first.
var likenesses = []likeness{
	{"white space differs", ink},
	{"similar characters differ", func(r rune) rune { return lookalike(ink(r)) }},
	{"upper and lower case differ", func(r rune) rune { return unicode.ToLower(lookalike(ink(r))) }},
}

// ink drops white space and invisible characters.
func ink(r rune) rune {
	if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

// lookalike returns the ASCII character for which a quotation mark or a dash stands.
func lookalike(r rune) rune {
	switch r {
	case '\u2018', '\u2019', '\u201A', '\u2032', '\u00B4', '`':
		return '\''
	case '\u201C', '\u201D', '\u201E', '\u00AB', '\u00BB', '\u2033':
		return '"'
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2212':
		return '-'
	}
	return r
}

// numbered finds the line numbers that Read puts before lines.
var numbered = regexp.MustCompile(`(?m)^ *[0-9]+\t`)

// escapes are characters as they stand in a program's text or in JSON.
var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, "'", `\\`, `\`)

// almost returns what keeps a text from being found that the content has nearly so; empty if it has nothing like it.
func almost(content []byte, old string) string {
	if plain := numbered.ReplaceAllString(old, ""); plain != old && plain != "" && bytes.Contains(content, []byte(plain)) {
		return "the text has the line numbers that Read shows: leave them out"
	}
	if plain := escapes.Replace(old); plain != old && plain != "" && bytes.Contains(content, []byte(plain)) {
		return `the text has escapes such as \n or \" where the file has the characters themselves`
	}
	for _, l := range likenesses {
		want := folded([]byte(old), l.fold)
		if len(want) == 0 {
			continue
		}
		have := folded(content, l.fold)
		if at := bytes.Index(have, want); at >= 0 {
			line, there, here := difference(content, old, unfold(content, l.fold, at), l.fold)
			return fmt.Sprintf("%s: line %d of the file has %s where the text has %s", l.differs, line, there, here)
		}
	}
	return ""
}

// folded returns a text with what counts of it.
func folded(text []byte, fold func(rune) rune) []byte { return bytes.Map(fold, text) }

// unfold returns the place in a text of a place in the folded text.
func unfold(text []byte, fold func(rune) rune, folded int) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if f := fold(r); f >= 0 {
			if folded <= 0 {
				break
			}
			folded -= utf8.RuneLen(f)
		}
		at += size
	}
	return at
}

// difference returns the number of the first line in which a text differs from the content, and what each of them has
// there. The first character that counts of the text is at a place of the content.
func difference(content []byte, old string, at int, fold func(rune) rune) (line int, there, here string) {
	lead := unfold([]byte(old), fold, 0)
	i, j := at, lead
	for i > 0 && j > 0 && content[i-1] == old[j-1] { // the blanks before it
		i, j = i-1, j-1
	}
	if j == 0 {
		for i, j = at, lead; i < len(content) && j < len(old) && content[i] == old[j]; {
			i, j = i+1, j+1
		}
	}
	return bytes.Count(content[:i], newline) + 1, excerpt(content, i), excerpt([]byte(old), j)
}

// Bounds of an excerpt, in bytes.
const (
	excerptBefore = 40
	excerptAfter  = 40
)

// excerpt quotes the part of a line around a place, with the line's end.
func excerpt(text []byte, at int) string {
	begin := max(bytes.LastIndexByte(text[:at], '\n')+1, at-excerptBefore)
	end := min(len(text), at+excerptAfter)
	if i := bytes.IndexByte(text[at:end], '\n'); i >= 0 {
		end = at + i + 1
	}
	for begin < at && !utf8.RuneStart(text[begin]) {
		begin++
	}
	for end > at && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	if begin == end {
		return "its end"
	}
	return fmt.Sprintf("%q", text[begin:end])
}
