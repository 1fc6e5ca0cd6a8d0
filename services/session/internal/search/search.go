// Package search splits text into words, so that every database finds the same.
package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	// MaxText bounds the searched part of a message's text, in bytes.
	MaxText = 256 << 10
	// maxWords bounds the different words of a message.
	maxWords = 10_000
	// maxWord bounds the compared part of a word, in letters.
	maxWord = 64
	// MaxSnippet bounds the length of a snippet, in characters.
	MaxSnippet = 300
	// before is the length of a snippet before the found word.
	before = 100
	more   = '…'
)

// Word is a word to look for.
type Word struct {
	Text   string // as Words makes it
	Prefix bool   // also finds words that only begin so
}

func partOfWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// fold maps texts that look the same or differ only in case to the same text.
func fold(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(s)
	}
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
}

func clip(word string) string {
	n := 0
	for i := range word {
		if n++; n > maxWord {
			return word[:i]
		}
	}
	return word
}

// Words returns the different words of a text, sorted: runs of letters and
// digits, without regard to case. Languages without spaces between words have
// long runs, which are found by their beginnings.
func Words(text string) []string {
	words := strings.FieldsFunc(fold(text), func(r rune) bool { return !partOfWord(r) })
	for i := range words {
		words[i] = clip(words[i])
	}
	slices.Sort(words)
	words = slices.Compact(words)
	return words[:min(len(words), maxWords)]
}

// Query parses a person's query: words that must all occur; `*` at the end of a
// word finds all that begin so.
func Query(query string) []Word {
	var words []Word
	rest := fold(query)
	for {
		begin := strings.IndexFunc(rest, partOfWord)
		if begin < 0 {
			return words
		}
		rest = rest[begin:]
		end := strings.IndexFunc(rest, func(r rune) bool { return !partOfWord(r) })
		if end < 0 {
			end = len(rest)
		}
		w := Word{Text: clip(rest[:end]), Prefix: strings.HasPrefix(rest[end:], "*")}
		if rest = rest[end:]; !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
}

// Snippet returns the part of a text around the first of the words in it, or
// the beginning if it has none.
func Snippet(text string, words []Word) string {
	from := hit(text, words)
	for range before {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	out, cut := make([]rune, 0, MaxSnippet), false
	for _, r := range text[from:] {
		if cut = len(out) == MaxSnippet; cut {
			break
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			r = ' '
		}
		out = append(out, r)
	}
	if from > 0 {
		out[0] = more
	}
	if cut {
		out[len(out)-1] = more
	}
	return string(out)
}

// wanted has the words of a query, so that the work for a word of a text does not grow with their number.
type wanted struct{ whole, beginnings map[string]bool }

func (w *wanted) has(word string) bool {
	word = clip(fold(word))
	if w.whole[word] || w.beginnings[word] {
		return true
	}
	if len(w.beginnings) > 0 {
		for i := range word {
			if w.beginnings[word[:i]] {
				return true
			}
		}
	}
	return false
}

// hit returns the index of the first of the words.
func hit(text string, words []Word) int {
	want := wanted{whole: map[string]bool{}, beginnings: map[string]bool{}}
	for _, w := range words {
		if w.Prefix {
			want.beginnings[w.Text] = true
		} else {
			want.whole[w.Text] = true
		}
	}
	begin := -1
	for i, r := range text {
		switch part := partOfWord(r); {
		case part && begin < 0:
			begin = i
		case !part && begin >= 0:
			if want.has(text[begin:i]) {
				return begin
			}
			begin = -1
		}
	}
	if begin >= 0 && want.has(text[begin:]) {
		return begin
	}
	return 0
}
