// Package search splits text into words, so that every database finds the same.
package search

import (
	"slices"
	"strings"
	"unicode"

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
func fold(s string) string { return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s))) }

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
	runes := []rune(text)
	from := max(0, hit(runes, words)-before)
	to := min(len(runes), from+MaxSnippet)
	out := slices.Clone(runes[from:to])
	for i, r := range out {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			out[i] = ' '
		}
	}
	if from > 0 {
		out[0] = more
	}
	if to < len(runes) {
		out[len(out)-1] = more
	}
	return string(out)
}

// hit returns the position of the first of the words.
func hit(text []rune, words []Word) int {
	for begin := 0; begin < len(text); begin++ {
		if !partOfWord(text[begin]) {
			continue
		}
		end := begin
		for end < len(text) && partOfWord(text[end]) {
			end++
		}
		have := clip(fold(string(text[begin:end])))
		if slices.ContainsFunc(words, func(w Word) bool {
			return have == w.Text || w.Prefix && strings.HasPrefix(have, w.Text)
		}) {
			return begin
		}
		begin = end
	}
	return 0
}
