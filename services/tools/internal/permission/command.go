package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command is one simple command.
type command struct {
	raw      string   // as it is written
	words    string   // without quotes that have no effect
	dynamic  bool     // the name of the program is computed
	anyFirst bool     // the first word may be any
	variants []string // further forms, for rules that restrict
	doubts   [][]word // forms that only the shell or the program completes, for rules that restrict
	first    string   // the first word as it is written
	firsts   []string // those of other forms
}

// begin sets the first words.
func (c *command) begin() {
	c.first = firstWord(c.raw)
	for i := -1; i < len(c.variants); i++ {
		form := c.words
		if i >= 0 {
			form = c.variants[i]
		}
		if word := firstWord(form); word != c.first && !slices.Contains(c.firsts, word) {
			c.firsts = append(c.firsts, word)
		}
	}
	for _, words := range c.doubts {
		c.anyFirst = c.anyFirst || !words[0].known
		if name := words[0].text; name != c.first && !slices.Contains(c.firsts, name) {
			c.firsts = append(c.firsts, name)
		}
	}
}

// may reports whether a pattern may match a form of the command.
func (c *command) may(p *pattern) bool {
	return p.first == "" || c.anyFirst || p.first == c.first || len(c.firsts) > 0 && slices.Contains(c.firsts, p.first)
}

// add adds a simple command.
func (s *script) add(n *syntax.CallExpr, text string, depth int) {
	words := wordsOf(n, text)
	c := command{raw: source(n, text), dynamic: !words[0].known}
	c.words = c.raw
	if !written(c.raw, words) {
		c.words = joined(words)
	}
	plain := c.words
	if len(n.Assigns) > 0 {
		// A variable set for one command may change which program runs.
		c.words = c.raw
	}
	full := expand(n, words, text)
	s.judge(words, full)
	forms, inner := s.unwrap(full, 0)
	for _, w := range forms {
		s.judge(w, w)
		s.form(&c, joined(w), w)
	}
	if len(full) > 0 && len(words) > 0 && &full[0] != &words[0] {
		plain = joined(full)
	}
	s.form(&c, plain, full)
	if !s.within {
		s.spoken = nil
	}
	for _, w := range append(forms, full) {
		s.speak(&c, w, depth)
	}
	c.begin()
	s.commands = append(s.commands, c)
	s.anyFirst = s.anyFirst || c.anyFirst
	s.firsts.add(c.first)
	for _, word := range c.firsts {
		s.firsts.add(word)
	}
	for _, script := range inner {
		if depth == maxInner {
			s.hide("it nests scripts too deeply")
			return
		}
		s.parse(script, depth+1)
	}
}

// form adds a form of a command that a restricting rule is tried on: as it is, with the base name of the program, and
// without the options before its subcommand.
func (s *script) form(c *command, line string, words []word) {
	if !s.spend(4*len(line) + wordSteps*len(words)) {
		return
	}
	if line != c.words {
		c.variants = append(c.variants, line)
	}
	if !words[0].known {
		if _, ok := words[0].shape.base(); ok {
			c.doubts = append(c.doubts, words)
		}
		return
	}
	all := [][]word{words}
	if name := path.Base(words[0].text); name != words[0].text {
		based := append([]word{{text: name, known: true}}, words[1:]...)
		c.variants = append(c.variants, joined(based))
		all = append(all, based)
	}
	for _, w := range all {
		if sub, ok := strings.CutPrefix(w[0].text, "git-"); ok {
			w = append([]word{{text: "git", known: true}, {text: sub, known: true}}, w[1:]...)
			c.variants = append(c.variants, joined(w))
		}
		if short := subcommand(w); short != nil {
			c.variants = append(c.variants, joined(short))
		}
		if doubtful(w) {
			c.doubts = append(c.doubts, w)
		}
	}
}

// allowedBy returns the rule that allows a command.
func (c *command) allowedBy(rules []rule, m *meter) (string, bool) {
	for i := range rules {
		if p := rules[i].command; p != nil && c.allows(p, m) {
			return rules[i].text, true
		}
	}
	return "", false
}

// allows reports whether a rule with a pattern allows a command.
func (c *command) allows(p *pattern, m *meter) bool {
	return m.spend(1) && c.may(p) && !c.dynamic && m.spend(matchSteps+(len(c.words)+len(c.raw))/4) && (p.match(c.words) || p.match(c.raw))
}

// reason says why a restricting rule matches although no command does for sure.
func (s *script) reason(r *rule) string {
	if s.anyMatches(r) {
		return ""
	}
	if s.opaque != "" {
		return " (cannot be ruled out: " + s.opaque + ")"
	}
	if c := s.mayMatch(r); c != nil {
		return " (cannot be ruled out: " + c.doubt() + ")"
	}
	return ""
}

// doubt says why a restricting rule may match a command.
func (c *command) doubt() string {
	for _, words := range c.doubts {
		for _, w := range words {
			if !w.known {
				return fmt.Sprintf("the word %s may stand for others", clip(w.text))
			}
		}
	}
	return fmt.Sprintf("%s may have options before its subcommand", clip(c.raw))
}

// may reports whether a restricting rule may match a form of some command, by its first word.
func (s *script) may(r *rule) bool {
	return r.command.first == "" || s.anyFirst || s.firsts.has(r.command.first)
}

// anyMatches reports whether a restricting rule matches any command for sure.
func (s *script) anyMatches(r *rule) bool {
	if !s.may(r) {
		return false
	}
	for i := range s.commands {
		if s.spend(1) && s.commands[i].matches(r, s.meter) {
			return true
		}
	}
	return false
}

// mayMatch returns a command that a restricting rule may match: its words are not literal, or have options between them.
func (s *script) mayMatch(r *rule) *command {
	if !s.may(r) {
		return nil
	}
	for i := range s.commands {
		if s.spend(1) && s.commands[i].mayMatch(r, s.meter) {
			return &s.commands[i]
		}
	}
	return nil
}

// matches reports whether a restricting rule matches a command in one of its forms.
func (c *command) matches(r *rule, m *meter) bool {
	if !c.may(r.command) {
		return false
	}
	if r.command.matchCounted(c.raw, m) || r.command.matchCounted(c.words, m) {
		return true
	}
	for _, form := range c.variants {
		if r.command.matchCounted(form, m) {
			return true
		}
	}
	return false
}

// mayMatch reports whether a restricting rule matches a command for some value of its words.
func (c *command) mayMatch(r *rule, m *meter) bool {
	return len(c.doubts) > 0 && c.may(r.command) && slices.ContainsFunc(c.doubts, func(words []word) bool { return r.command.mayMatch(words, m) })
}
