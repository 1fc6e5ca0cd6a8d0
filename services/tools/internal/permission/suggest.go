package permission

import (
	"path"
	"slices"
	"strings"
)

// maxSuggestions bounds the rules that are suggested for one call.
const maxSuggestions = 6

// maxTried bounds the rules that are tried for the suggestions.
const maxTried = 32

// Suggest returns rules that cover a call about which a person is asked, the narrowest
// first. There may be none: a rule cannot name every call.
func (p *Policy) Suggest(q Request) []string { return p.suggest(p.whole(q, &meter{})) }

func (p *Policy) suggest(s *subject) []string {
	var rules []string
	c := p.coverage(s)
	for _, text := range candidates(s) {
		if len(rules) == maxSuggestions {
			break
		}
		if g, err := NewGrant(s.Tool, text, ""); err == nil && c.covers(g.Bound(s.Binding)) {
			rules = append(rules, text)
		}
	}
	return rules
}

// candidates returns up to maxTried rules, none of them twice. A command is parsed.
func candidates(s *subject) []string {
	q := s.Request
	switch {
	case q.Tool == bash:
		rules := []string{"Bash(" + exactly(strings.TrimSpace(q.Command)) + ")"}
		for i := range s.parsed.commands {
			head := s.parsed.commands[i].head()
			if text := "Bash(" + head + " *)"; head != "" && !slices.Contains(rules, text) {
				rules = append(rules, text)
			}
			if len(rules) == maxTried {
				break
			}
		}
		return rules
	case slices.Contains(namingTools, q.Tool) && q.Name != "":
		return []string{q.Tool + "(" + exactly(q.Name) + ")", q.Tool}
	case pathTools[q.Tool] == nil:
		return []string{q.Tool}
	case s.path == "." || !s.inside || strings.ContainsAny(s.path, "*?"):
		return nil
	}
	rules := []string{q.Tool + "(./" + s.path + ")"}
	if dir := path.Dir(s.path); dir != "." {
		rules = append(rules, q.Tool+"(./"+dir+"/**)")
	}
	return rules
}

// subcommands are programs whose second word says what they do, and those second words
// that run any program: no rule is suggested for these.
var subcommands = map[string][]string{
	"git":     {"bisect", "config", "filter-branch", "submodule"},
	"go":      {"generate", "run", "tool"},
	"cargo":   {"run"},
	"npm":     {"exec", "x"},
	"pnpm":    {"dlx", "exec"},
	"yarn":    {"dlx", "exec"},
	"make":    {},
	"pip":     {},
	"docker":  {"exec", "run"},
	"kubectl": {"exec", "run"},
	"gh":      {"alias", "extension"},
}

// head returns the first words of a command which say what it does; empty if these words
// leave that open.
func (c *command) head() string {
	words := strings.SplitN(c.words, " ", 4)
	if c.dynamic || !plainWord(words[0]) {
		return ""
	}
	if slices.Contains(readers, words[0]) {
		return words[0]
	}
	open, ok := subcommands[words[0]]
	if !ok || len(words) < 2 || !plainWord(words[1]) || slices.Contains(open, words[1]) {
		return ""
	}
	if words[1] != "run" {
		return words[0] + " " + words[1]
	}
	if len(words) < 3 || !plainWord(words[2]) {
		return ""
	}
	return strings.Join(words[:3], " ")
}

// plainWord reports whether a word is one to a reader and to the shell alike, and no option.
func plainWord(w string) bool {
	return w != "" && w[0] != '-' && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789-_:") == ""
}
