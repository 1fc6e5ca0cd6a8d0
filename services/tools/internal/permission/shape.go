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

// shapeOf returns the shape of a word that has no braces to expand.
func shapeOf(parts []syntax.WordPart, text string) *shape {
	f := &shape{}
	solid := false // some part stays, whatever the shell finds
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if spansClass(parts[i:]) {
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

func (f *shape) add(kind pieceKind, text string) { f.pieces = append(f.pieces, piece{kind, text}) }

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
	for i := 0; i < len(s); {
		n := special(s, i, begins)
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

// special returns the length of the pattern or the tilde at an index of an unquoted text; 0 if the character stands for
// itself.
func special(s string, i int, begins bool) int {
	switch s[i] {
	case '*', '?':
		return 1
	case '[':
		return classEnd(s[i:])
	case '~':
		if i == 0 && begins || i > 0 && (s[i-1] == '=' || s[i-1] == ':') {
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
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if special(s, i, begins) > 0 {
			return false
		}
	}
	return true
}

// spansClass reports whether a bracket expression may begin in the first of some parts and end in another one.
func spansClass(parts []syntax.WordPart) bool {
	lit, ok := parts[0].(*syntax.Lit)
	return ok && len(parts) > 1 && strings.Contains(lit.Value, "[") && slices.ContainsFunc(parts[1:], func(p syntax.WordPart) bool {
		end, ok := p.(*syntax.Lit)
		return ok && strings.Contains(end.Value, "]")
	})
}

// classEnd returns the length of the bracket expression at the beginning of a text, or 0. Without a closing bracket the
// opening one is a character like others, as in the name of the program `[`.
func classEnd(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	for begin := i; i < len(s); i++ {
		switch {
		case s[i] == ']' && i > begin:
			return i + 1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0: // as in [[:alpha:]]
			if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end >= 0 {
				i += end + 3
			}
		}
	}
	return 0
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
