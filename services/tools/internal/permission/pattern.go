package permission

import "strings"

// pattern is a text with wildcards: `*` stands for any text, `\*` for an asterisk.
type pattern struct {
	// parts are the texts between the wildcards. The first one stands at the beginning and
	// the last one at the end.
	parts []string
	// open also matches a text that goes on with a space behind the pattern.
	open bool
	// symbols are the bytes of a pattern of commands, and star for each wildcard.
	symbols []int16
	// first is the first word of every text that matches; empty if that is not known.
	first string
}

// star is the symbol of a wildcard.
const star = -1

// spread sets the symbols.
func (p *pattern) spread() {
	for i, part := range p.parts {
		if i > 0 {
			p.symbols = append(p.symbols, star)
		}
		for j := range len(part) {
			p.symbols = append(p.symbols, int16(part[j]))
		}
	}
}

// firstWord returns what comes before the first space of a text.
func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// begin sets the first word.
func (p *pattern) begin() {
	word, _, more := strings.Cut(p.parts[0], " ")
	if more || len(p.parts) == 1 {
		p.first = word
	}
}

// newPattern reads a pattern.
func newPattern(text string) pattern {
	if !strings.Contains(text, "*") {
		return pattern{parts: []string{text}}
	}
	var parts []string
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '*':
			parts = append(parts, b.String())
			b.Reset()
		case strings.HasPrefix(text[i:], `\*`):
			i++
			b.WriteByte('*')
		default:
			b.WriteByte(text[i])
		}
	}
	return pattern{parts: append(parts, b.String())}
}

// exactly returns the pattern that matches one text alone.
func exactly(text string) string { return strings.ReplaceAll(text, "*", `\*`) }

// exact returns the only text that the pattern matches, if there is only one.
func (p *pattern) exact() (string, bool) { return p.parts[0], len(p.parts) == 1 && !p.open }

// match reports whether the pattern covers a text. Wildcards match as little as they can,
// which is enough as the texts between them have a fixed length.
func (p *pattern) match(s string) bool {
	first, last := p.parts[0], p.parts[len(p.parts)-1]
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	if len(p.parts) == 1 {
		return s == "" || p.open && s[0] == ' '
	}
	for _, part := range p.parts[1 : len(p.parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last) || p.open && strings.Contains(s, last+" ")
}

// matchSteps is how many steps the match of a short text counts for.
const matchSteps = 8

// matchCounted is match, and counts its steps. It matches once there are too many of them.
func (p *pattern) matchCounted(s string, m *meter) bool {
	return !m.spend(matchSteps+len(s)/4) || p.match(s)
}
