package files

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is the compiled pattern of a search.
type pattern struct {
	re *regexp.Regexp
	// needle is a text that every match contains, or nil if none is known. Searching for it is many times
	// as fast as matching.
	needle *needle
	// plain means that the pattern is just the needle.
	plain bool
	// size is the largest effort for one byte of a text.
	size int
}

// maxPattern is the largest size of a pattern with its repetitions written out.
const maxPattern = 1 << 15

// size returns that size.
func size(re *syntax.Regexp) int {
	all := 1
	if re.Op == syntax.OpLiteral {
		all = max(len(re.Rune), 1)
	}
	for _, sub := range re.Sub {
		all += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		all *= max(re.Min, re.Max, 1)
	}
	return all
}

func (q GrepQuery) compile() (*pattern, error) {
	flags := "m"
	if q.IgnoreCase {
		flags += "i"
	}
	if q.Multiline {
		flags += "s"
	}
	tree, err := syntax.Parse("(?"+flags+")"+q.Pattern, syntax.Perl)
	if err != nil {
		return nil, badPattern(err)
	}
	if !q.Multiline {
		tree = withinLine(tree)
	}
	p := &pattern{size: size(tree)}
	if p.size > maxPattern {
		return nil, fmt.Errorf("%w: what is repeated in it makes it too large: repeat less", ErrPattern)
	}
	if p.re, err = regexp.Compile(tree.String()); err != nil {
		return nil, badPattern(err)
	}
	p.needle, p.plain = findNeedle(tree), tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0
	return p, nil
}

func badPattern(err error) error {
	var se *syntax.Error
	if errors.As(err, &se) {
		return fmt.Errorf("%w: %s: the syntax is RE2's", ErrPattern, se.Error())
	}
	return fmt.Errorf("%w: %w", ErrPattern, err)
}

// withinLine changes a pattern so that it never matches a line feed and treats each line as a text of its
// own. So a search of a whole file finds the same matches as a search of each line.
func withinLine(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r == '\n' {
				return &syntax.Regexp{Op: syntax.OpNoMatch}
			}
		}
	case syntax.OpCharClass:
		return classWithin(re)
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op = syntax.OpEndLine
	}
	for i, sub := range re.Sub {
		re.Sub[i] = withinLine(sub)
	}
	return re
}

// classWithin removes the line feed from a class.
func classWithin(re *syntax.Regexp) *syntax.Regexp {
	var ranges []rune
	for i := 0; i < len(re.Rune); i += 2 {
		low, high := re.Rune[i], re.Rune[i+1]
		if low > '\n' || high < '\n' {
			ranges = append(ranges, low, high)
			continue
		}
		if low < '\n' {
			ranges = append(ranges, low, '\n'-1)
		}
		if high > '\n' {
			ranges = append(ranges, '\n'+1, high)
		}
	}
	if len(ranges) == 0 {
		return &syntax.Regexp{Op: syntax.OpNoMatch}
	}
	re.Rune = ranges
	return re
}

// needle is a text to search for.
type needle struct {
	text string   // not empty; in lower case if fold is set
	fold bool     // match either case of ASCII letters
	rare int      // index of the byte that is searched first: the one that is rarest in source code
	pair bytePair // of that byte and the second rarest one
}

// findNeedle returns the longest text that every match is known to contain.
func findNeedle(re *syntax.Regexp) *needle {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return foldedNeedle(re.Rune)
		}
		return newNeedle(string(re.Rune), false)
	case syntax.OpCapture, syntax.OpPlus:
		return findNeedle(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return findNeedle(re.Sub[0])
		}
	case syntax.OpConcat:
		var best *needle
		for _, sub := range re.Sub {
			if n := findNeedle(sub); n != nil && (best == nil || len(n.text) > len(best.text)) {
				best = n
			}
		}
		return best
	}
	return nil
}

// foldedNeedle returns the longest part of a text in which each letter's other case is one other byte. It
// excludes non-ASCII characters (which may have such a case), and k and s, which are also the other case of
// U+212A and U+017F.
func foldedNeedle(runes []rune) *needle {
	longest := ""
	parts := strings.FieldsFuncSeq(string(runes), func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) })
	for part := range parts {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if longest == "" {
		return nil
	}
	return newNeedle(strings.ToLower(longest), true)
}

// frequent are the bytes of source code and prose, the most frequent first.
const frequent = " etnairoslcdupmfg\n\t.(),hb\"v=y_w-0:/x1{}k2;*[]'345678>9<jqz"

func newNeedle(text string, fold bool) *needle {
	n := &needle{text: text, fold: fold}
	n.rare = n.rarest(-1)
	n.pair = newBytePair(text, n.rare, n.rarest(n.rare))
	return n
}

// rarest returns the index of the rarest byte, not counting one.
func (n *needle) rarest(but int) (index int) {
	most := -1
	for i := range len(n.text) {
		rank := strings.IndexByte(frequent, lowerCase(n.text[i]))
		if rank < 0 {
			rank = len(frequent)
		}
		if i != but && rank > most {
			index, most = i, rank
		}
	}
	return index
}

// commonByte is the average distance of a byte's occurrences below which searching for two bytes at once is
// faster.
const commonByte = 256

// index returns where the needle first occurs in a text, or -1.
func (n *needle) index(text []byte) int {
	if n.fold {
		return n.indexFold(text)
	}
	for at, tries := n.rare, 1; at < len(text); tries++ {
		i := bytes.IndexByte(text[at:], n.text[n.rare])
		if i < 0 {
			return -1
		}
		start := at + i - n.rare
		if start+len(n.text) <= len(text) && string(text[start:start+len(n.text)]) == n.text {
			return start
		}
		at += i + 1
		if tries >= 8 && tries*commonByte > at {
			if i := n.pair.index(text[start+1:], n.text); i >= 0 {
				return start + 1 + i
			}
			return -1
		}
	}
	return -1
}

func (n *needle) indexFold(text []byte) int {
	lower := &cursor{b: n.text[n.rare]}
	upper := lower
	if upperCase(lower.b) != lower.b {
		upper = &cursor{b: upperCase(lower.b)}
	}
	for at := n.rare; at < len(text); at++ {
		at = min(lower.next(text, at), upper.next(text, at))
		if start := at - n.rare; start+len(n.text) <= len(text) && n.matches(text[start:start+len(n.text)]) {
			return start
		}
	}
	return -1
}

func (n *needle) matches(text []byte) bool {
	for i, b := range text {
		if n.text[i] != b && upperCase(n.text[i]) != b {
			return false
		}
	}
	return true
}

func upperCase(b byte) byte {
	if 'a' <= b && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}

func lowerCase(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b - 'A' + 'a'
	}
	return b
}

// cursor remembers the next place of a byte.
type cursor struct {
	b     byte
	known int // the next place; there is none before it
	valid bool
}

// next returns the first place from at on, or the text's length if there is none. Successive calls need
// increasing places.
func (c *cursor) next(text []byte, at int) int {
	if c.valid && c.known >= at {
		return c.known
	}
	c.valid, c.known = true, len(text)
	if i := bytes.IndexByte(text[at:], c.b); i >= 0 {
		c.known = at + i
	}
	return c.known
}
