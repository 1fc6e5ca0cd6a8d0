// Package search decides what the words of a text are, so that every database
// finds the same.
package search

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	// MaxText is how much of a message's text is looked at, in bytes.
	MaxText = 256 << 10
	// maxWords is how many different words of a message can be found.
	maxWords = 10_000
	// maxWord is how much of a word counts, in letters.
	maxWord = 64
	// MaxSnippet is how long a snippet is at most, in characters.
	MaxSnippet = 300
	// before is how much of a snippet comes before the word that was found.
	before = 100
	more   = '…'
)

// Word is a word to look for.
type Word struct {
	Text   string // as Words makes it
	Prefix bool   // also finds words that only begin so
}

func partOfWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// fold makes the same of what looks the same or differs in case only.
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

// Words lists the different words of a text, sorted: runs of letters and digits,
// without regard to case. Languages that put no spaces between words make long
// runs, which are found by how they begin.
func Words(text string) []string {
	words := strings.FieldsFunc(fold(text), func(r rune) bool { return !partOfWord(r) })
	for i := range words {
		words[i] = clip(words[i])
	}
	slices.Sort(words)
	words = slices.Compact(words)
	return words[:min(len(words), maxWords)]
}

// Query reads what a person looks for: words that all must be there, each with
// `*` at its end for those that begin so.
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

// Snippet is the part of a text around the first of the words that is in it;
// the beginning when none is.
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

// hit is where the first of the words begins.
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
