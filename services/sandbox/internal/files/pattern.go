package files

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is what a search looks for.
type pattern struct {
	re *regexp.Regexp
	// needle is a text that every match contains; nil when none is known. Looking for
	// it is many times as fast as matching.
	needle *needle
	// plain says that the needle is all there is to the pattern.
	plain bool
	// size is how much there may be to do for one byte of a text.
	size int
}

// maxPattern is how large a pattern may be once what is repeated in it is written out.
const maxPattern = 1 << 15

// size is how large a pattern is then.
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

// clone is a pattern for another goroutine.
func (p *pattern) clone() *pattern {
	q := *p
	if p.needle != nil {
		n := *p.needle
		q.needle = &n
	}
	return &q
}

func badPattern(err error) error {
	var se *syntax.Error
	if errors.As(err, &se) {
		return fmt.Errorf("%w: %s: the syntax is RE2's", ErrPattern, se.Error())
	}
	return fmt.Errorf("%w: %w", ErrPattern, err)
}

// withinLine makes a pattern one that never matches a line feed, and for which each
// line is a text of its own: so it finds in a whole file what it would find in
// each of its lines.
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

// classWithin takes the line feed out of a class.
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

// needle is a text to look for.
type needle struct {
	text string // not empty; in lower case when fold is set
	fold bool   // in either case, of ASCII letters
	rare int    // the byte of text that is looked for first
	next int    // the byte that is the rarest but for that one
	twin *twin  // of these two; nil until it is wanted

	tuned bool
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

// foldedNeedle takes the longest part of a text in which a letter's other case is
// one other byte. So it leaves out what is not ASCII (which may be so in lower case), and k
// and s, which are also the other case of U+212A and U+017F.
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

func newNeedle(text string, fold bool) *needle { return &needle{text: text, fold: fold} }

// tunedBy is how much text tells which bytes are rare.
const tunedBy = 4 << 10

// tune has the byte be looked for first that is the rarest in a text, once there is
// one that is long enough.
func (n *needle) tune(text []byte) {
	if n.tuned || len(text) < tunedBy {
		return
	}
	n.tuned = true
	var count [256]int
	for _, b := range text[:tunedBy] {
		count[b]++
	}
	often := func(i int) int {
		b := n.text[i]
		if n.fold && upperCase(b) != b {
			return count[b] + count[upperCase(b)]
		}
		return count[b]
	}
	for i := range len(n.text) {
		if often(i) < often(n.rare) {
			n.rare = i
		}
	}
	n.next, n.twin = 0, nil
	for i := range len(n.text) {
		if i != n.rare && (n.next == n.rare || often(i) < often(n.next)) {
			n.next = i
		}
	}
}

// commonByte is how close the places of the byte that is looked for may lie on the
// average before it is better to look for two at once.
const commonByte = 256

// index is where the needle is first in a text; -1 when it is not.
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
			if i := n.both().index(text[start+1:], n.text); i >= 0 {
				return start + 1 + i
			}
			return -1
		}
	}
	return -1
}

// both looks for the two rarest bytes at once. Of one byte, it is that twice.
func (n *needle) both() *twin {
	if n.next == n.rare && len(n.text) > 1 { // nothing is known of their number
		n.next = (n.rare + len(n.text) - 1) % len(n.text)
	}
	if n.twin == nil {
		n.twin = newTwin(n.text, n.rare, n.next)
	}
	return n.twin
}

func (n *needle) indexFold(text []byte) int {
	lower, upper := &cursor{b: n.text[n.rare]}, &cursor{b: upperCase(n.text[n.rare])}
	for at := n.rare; at < len(text); at++ {
		i := lower.next(text, at)
		if lower.b != upper.b {
			i = min(i, upper.next(text, at))
		}
		if i == len(text) {
			return -1
		}
		at = i
		start := at - n.rare
		if start+len(n.text) <= len(text) && n.matches(text[start:start+len(n.text)]) {
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

// cursor remembers where a byte comes next.
type cursor struct {
	b     byte
	known int // where it is next; it is not before
	valid bool
}

// next is the first place from at on; the text's length when there is none. Calls
// come with growing places.
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
