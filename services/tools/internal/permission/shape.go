package permission

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxAlternatives bounds the words that the braces of one word stand for.
const maxAlternatives = 64

// piece is a part of a word: a text, or a part whose value only the shell knows.
type piece struct {
	kind pieceKind
	text string
}

type pieceKind int

const (
	fixed pieceKind = iota
	open            // any text within one word
	loose           // any text, which may be several words
)

// shape is what is known of a word that is not literal.
type shape struct {
	pieces []piece
	gone   bool // the shell may drop the word
	again  bool // the shell may write several words of the shape
}

// anyWords is the shape of words of which nothing is known.
var anyWords = &shape{pieces: []piece{{kind: loose}}, gone: true}

// option reports whether the word may be an option, and whether its value is surely part of the word.
func (f *shape) option() (may, whole bool) {
	if len(f.pieces) == 0 {
		return false, false
	}
	first := f.pieces[0]
	if first.kind != fixed {
		return true, false
	}
	return strings.HasPrefix(first.text, "-"), strings.Contains(first.text, "=")
}

// several reports whether the shell may make several words of the word, or none.
func (f *shape) several() bool {
	return f.gone || f.again || slices.ContainsFunc(f.pieces, func(p piece) bool { return p.kind == loose })
}

// base returns the last name of a path, if it is literal and the word surely is one word.
func (f *shape) base() (string, bool) {
	if f == nil || f.several() || len(f.pieces) == 0 {
		return "", false
	}
	last := f.pieces[len(f.pieces)-1]
	slash := strings.LastIndexByte(last.text, '/')
	return last.text[slash+1:], last.kind == fixed && slash >= 0 && slash < len(last.text)-1
}

// shapeOf returns the shape of a word that has no braces to expand.
func shapeOf(parts []syntax.WordPart, text string) *shape {
	f := &shape{}
	solid := false // some part stays, whatever the shell finds
	closes := lastClose(parts)
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if i < closes && strings.Contains(p.Value, "[") {
				return &shape{pieces: append(f.pieces, piece{kind: loose}), gone: true}
			}
			f.unquoted(p.Value, i == 0)
			solid = solid || p.Value != ""
		case *syntax.SglQuoted:
			solid = true
			if p.Dollar && strings.Contains(p.Value, `\`) {
				f.add(open, "")
			} else {
				f.add(fixed, p.Value)
			}
		case *syntax.DblQuoted:
			solid = f.quoted(p, text) || solid
		case *syntax.ProcSubst:
			solid = true
			f.add(fixed, "/")
			f.add(open, "")
		case *syntax.ExtGlob:
			f.again = true
			f.add(open, "")
		default:
			f.add(loose, "")
		}
	}
	f.gone = f.again || !solid
	return f
}

func (f *shape) add(kind pieceKind, text string) {
	if kind != fixed || text != "" {
		f.pieces = append(f.pieces, piece{kind, text})
	}
}

// quoted adds a part in double quotes. It reports whether the part is a word for sure: "$@" and its kind become several
// words, or none.
func (f *shape) quoted(p *syntax.DblQuoted, text string) bool {
	solid := len(p.Parts) == 0
	for _, inner := range p.Parts {
		lit, isText := inner.(*syntax.Lit)
		exp, isParam := inner.(*syntax.ParamExp)
		switch {
		case isText && !p.Dollar: // with a dollar it is translated
			f.add(fixed, unescape(lit.Value, "$`\"\\\n"))
		case isParam && strings.Contains(source(exp, text), "@"):
			f.add(loose, "")
			continue
		default:
			f.add(open, "")
		}
		solid = true
	}
	return solid
}

// unquoted adds a text in which patterns and tildes count.
func (f *shape) unquoted(s string, begins bool) {
	from := 0
	t := unquoted{text: s, begins: begins}
	for i := 0; i < len(s); {
		n := t.special(i)
		switch {
		case n == 0 && s[i] == '\\':
			i += 2
			continue
		case n == 0:
			i++
			continue
		case from < i:
			f.add(fixed, unescape(s[from:i], ""))
		}
		f.again = f.again || s[i] != '~' // files, of which there may be none
		f.add(open, "")
		i += n
		from = i
	}
	if from < len(s) {
		f.add(fixed, unescape(s[from:], ""))
	}
}

// unquoted is an unquoted part of a word.
type unquoted struct {
	text   string
	begins bool    // it is the beginning of the word
	ends   []int32 // see classEnds; nil until a bracket needs them
}

// special returns the length of the pattern or the tilde at an index; 0 if the character stands for itself.
func (t *unquoted) special(i int) int {
	s := t.text
	switch s[i] {
	case '*', '?':
		return 1
	case '[':
		if t.ends == nil {
			t.ends = classEnds(s)
		}
		return classLength(s, i, t.ends)
	case '~':
		if i == 0 && t.begins || i > 0 && (s[i-1] == '=' || s[i-1] == ':') {
			if end := strings.IndexAny(s[i:], "/:"); end > 0 {
				return end
			}
			return len(s) - i
		}
	}
	return 0
}

// plainText reports whether an unquoted text has no pattern and no tilde to expand.
func plainText(s string, begins bool) bool {
	t := unquoted{text: s, begins: begins}
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if t.special(i) > 0 {
			return false
		}
	}
	return true
}

// lastClose returns the index of the last unquoted part with a closing bracket; -1 if there is none. A bracket expression
// may begin in a part before it.
func lastClose(parts []syntax.WordPart) int {
	for i, p := range slices.Backward(parts) {
		if lit, ok := p.(*syntax.Lit); ok && strings.Contains(lit.Value, "]") {
			return i
		}
	}
	return -1
}

// classLength returns the length of the bracket expression at an index of a text, or 0. Without a closing bracket the
// opening one is a character like others, as in the name of the program `[`.
func classLength(s string, at int, ends []int32) int {
	i := at + 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	if i < len(s) && s[i] == ']' { // the first one is a member
		i++
	}
	return max(0, int(ends[i])-at)
}

// classEnds returns, for each index of a text and for its end, where a bracket expression ends whose members go on at
// that index: behind its closing bracket, or 0. It reads the text once, from its end.
func classEnds(s string) []int32 {
	ends := make([]int32, len(s)+1)
	var closes, after [3]int // the next `:]`, `.]` and `=]`, and those after them; 0 if there is none
	for i := len(s) - 1; i >= 0; i-- {
		next := i + 1
		if s[i] == '[' && next < len(s) { // as in [[:alpha:]]
			if kind := strings.IndexByte(":.=", s[next]); kind >= 0 {
				switch {
				case closes[kind] > next:
					next = closes[kind] + 2
				case after[kind] > 0: // the colon of `[:]` opens and does not close
					next = after[kind] + 2
				}
			}
		}
		if ends[i] = ends[next]; s[i] == ']' {
			ends[i] = int32(i + 1)
		}
		if kind := strings.IndexByte(":.=", s[i]); kind >= 0 && i+1 < len(s) && s[i+1] == ']' {
			closes[kind], after[kind] = i, closes[kind]
		}
	}
	return ends
}

// expanded returns the words that a word becomes. Braces are expanded; of sequences, and of more than maxAlternatives
// words, nothing is known.
func expanded(w *syntax.Word, text string) []word {
	whole := source(w, text)
	if plainBraces(w) {
		return []word{{text: whole, shape: shapeOf(w.Parts, text)}}
	}
	split := &syntax.Word{Parts: w.Parts}
	if !syntax.SplitBraces(split) {
		return []word{{text: whole, shape: anyWords}}
	}
	all, ok := alternatives(split.Parts)
	if !ok {
		return []word{{text: whole, shape: anyWords}}
	}
	words := make([]word, 0, len(all))
	for _, parts := range all {
		one := &syntax.Word{Parts: parts}
		if value, known := literal(one); known {
			if value != "" || slices.ContainsFunc(parts, isQuote) {
				words = append(words, word{text: value, known: true})
			}
			continue
		}
		words = append(words, word{text: spelled(parts, text), shape: shapeOf(parts, text)})
	}
	return words
}

// plainBraces reports whether no unquoted part of a word may be a brace expansion: `{}` and `HEAD@{1}` are none.
func plainBraces(w *syntax.Word) bool {
	seen := false
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			continue
		}
		if seen = seen || strings.Contains(lit.Value, "{"); seen && (strings.Contains(lit.Value, ",") || strings.Contains(lit.Value, "..")) {
			return false
		}
	}
	return true
}

func isQuote(p syntax.WordPart) bool {
	_, ok := p.(*syntax.Lit)
	return !ok
}

// spelled returns parts as they are written.
func spelled(parts []syntax.WordPart, text string) string {
	var b strings.Builder
	for _, part := range parts {
		if lit, ok := part.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
			continue
		}
		b.WriteString(source(part, text))
	}
	return b.String()
}

// alternatives expands the braces of a word. It reports false if there are too many of them.
func alternatives(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	all := [][]syntax.WordPart{nil}
	for _, part := range parts {
		braces, ok := part.(*syntax.BraceExp)
		if !ok {
			for i := range all {
				all[i] = append(all[i], part)
			}
			continue
		}
		if braces.Sequence {
			return nil, false
		}
		var more [][]syntax.WordPart
		for _, elem := range braces.Elems {
			inner, ok := alternatives(elem.Parts)
			if !ok || len(all)*(len(more)+len(inner)) > maxAlternatives {
				return nil, false
			}
			more = append(more, inner...)
		}
		var next [][]syntax.WordPart
		for _, head := range all {
			for _, tail := range more {
				next = append(next, append(head[:len(head):len(head)], tail...))
			}
		}
		all = next
	}
	return all, true
}
