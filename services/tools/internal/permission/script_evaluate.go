package permission

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// indexed matches a text with a command in an index: wherever the shell computes a number or takes the name of a variable,
// it runs that command. begun matches a text that ends within an index.
var (
	indexed = regexp.MustCompile("[A-Za-z0-9_]\\[[^]]*(\\$\\(|`)")
	begun   = regexp.MustCompile(`[A-Za-z0-9_]\[[^]]*$`)
)

// prompts are variables from which a shell runs commands, or which say what names of programs stand for.
var prompts = []string{"BASH_ALIASES", "BASH_CMDS", "BASH_ENV", "PROMPT_COMMAND", "PS4"}

// read looks for commands in the indexes of a word, however the parts of the word are quoted.
func (s *script) read(w *syntax.Word) {
	if lit := w.Lit(); lit != "" && !has(lit, "[`$") {
		return
	}
	text := spoken(w.Parts)
	s.quotes = s.quotes || strings.Contains(text, "$(") || strings.Contains(text, "`")
	s.begins = s.begins || begun.MatchString(text)
	if indexed.MatchString(text) {
		s.indexed = true
		first, _ := w.Parts[0].(*syntax.Lit)
		s.computes = s.computes || first != nil && strings.HasPrefix(first.Value, "{") // as in {a[1]}>x, where the shell sets the variable
	}
}

// index judges the index of a variable.
func (s *script) index(index syntax.ArithmExpr, text string) {
	if index == nil {
		return
	}
	s.computes = true
	if text := source(index, text); has(text, `'\`) && (strings.Contains(text, "$(") || strings.Contains(text, "`")) {
		s.hide("it has a quoted command in an index, which the shell may evaluate")
	}
}

// sets judges the name of a variable that a script sets.
func (s *script) sets(name string) {
	name, _, _ = strings.Cut(name, "[")
	if slices.Contains(prompts, name) {
		s.hide("it sets %s, from which a shell runs commands", name)
	}
}

// evaluate judges texts that the shell may evaluate. A text may be put together from several ones.
func (s *script) evaluate() {
	if s.computes && (s.indexed || s.begins && s.quotes) {
		s.hide("it has a text with an index, which the shell may evaluate")
	}
}

// judge judges the words of a command that the shell itself may run: a built-in command, perhaps behind `builtin`.
func (s *script) judge(words, full []word) {
	if why := meddles(words); why != "" {
		s.complicate("%s", why)
	}
	if why := deceives(words, full); why != "" {
		s.hide("%s", why)
	}
	name := words[0].text
	s.computes = s.computes || slices.Contains(evaluators, name)
	_, wraps := wrappers[path.Base(name)]
	takes := slices.Contains(evaluators, name) && name != "[" && name != "test" && (name != "printf" || len(words) > 1 && strings.HasPrefix(words[1].text, "-v"))
	for _, w := range words[1:] {
		for _, prompt := range prompts {
			if takes && strings.Contains(w.text, prompt) || wraps && strings.HasPrefix(w.text, prompt+"=") {
				s.sets(prompt)
			}
		}
	}
}

// spoken returns the texts of a word without their quotes. Expansions are left out.
func spoken(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				b.WriteString(decoded(p.Value))
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			b.WriteString(spoken(p.Parts))
		}
	}
	return b.String()
}

// escape matches an escape of $'…'.
var escape = regexp.MustCompile(`\\(?:x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|[\s\S])`)

// decoded returns the text of $'…'. Only its escapes for numbers and punctuation count: others stand for no bracket and no
// command.
func decoded(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		digits, base := strings.TrimLeft(e[1:], "xuU"), 16
		if digits == e[1:] {
			base = 8
		}
		if n, err := strconv.ParseUint(digits, base, 32); err == nil {
			return string(rune(n))
		}
		return e[1:]
	})
}
