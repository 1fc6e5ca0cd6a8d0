package permission

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal returns the value of a word without expansions.
func literal(w *syntax.Word) (string, bool) {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !has(lit.Value, `*?[{~\`) {
			return lit.Value, true
		}
	}
	if !plainBraces(w) {
		return "", false
	}
	var b strings.Builder
	closes := lastClose(w.Parts)
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if !plainText(p.Value, i == 0) || i < closes && strings.Contains(p.Value, "[") {
				return "", false
			}
			b.WriteString(unescape(p.Value, ""))
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || p.Dollar {
					return "", false
				}
				b.WriteString(unescape(lit.Value, "$`\"\\\n"))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape removes backslashes; within double quotes, only those before one of
// the given characters.
func unescape(s, only string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (only == "" || strings.IndexByte(only, s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// word is one word of a command: its value or, if that is not known, its text.
type word struct {
	text  string
	known bool
	shape *shape // of a value that is not known
}

// split reports whether the word, as it is, would not stay one word in a line.
func (w word) split() bool { return w.known && (w.text == "" || has(w.text, " \t\n")) }

// has reports whether a text contains one of a few characters. Unlike strings.ContainsAny
// it prepares nothing, which counts for short words.
func has(text, characters string) bool {
	for i := range len(text) {
		for j := range len(characters) {
			if text[i] == characters[j] {
				return true
			}
		}
	}
	return false
}

// written reports whether a line is how the words are joined: most commands are.
func written(line string, words []word) bool {
	for i, w := range words {
		rest, ok := strings.CutPrefix(line, w.text)
		if ok && i < len(words)-1 {
			rest, ok = strings.CutPrefix(rest, " ")
		}
		if !ok || w.split() {
			return false
		}
		line = rest
	}
	return line == ""
}

// joined writes words as one line.
func joined(words []word) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = shown(w)
	}
	return strings.Join(parts, " ")
}

// shown returns the text of a word. It quotes an empty word and a word with a space, so that each stays one word.
func shown(w word) string {
	if !w.split() {
		return w.text
	}
	return "'" + strings.ReplaceAll(w.text, "'", `'\''`) + "'"
}

// shells run their `-c` argument as a script.
var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "zsh": true, "ksh": true, "ash": true, "mksh": true, "rbash": true, "yash": true, "fish": true}

// unwrap finds what a command runs: the commands of wrappers, and the scripts
// of shells and eval. It is only for restricting rules, which become harder to
// bypass by accident; it does not understand every option of every program.
func (s *script) unwrap(words []word, depth int) (commands [][]word, scripts []string) {
	if !words[0].known {
		base, ok := words[0].shape.base()
		if !ok {
			s.hide("the name of the program that it runs is computed")
			return nil, nil
		}
		words = append([]word{{text: base, known: true}}, words[1:]...)
		commands = append(commands, words)
	}
	name := path.Base(words[0].text)
	own, wraps := wrappers[name]
	wraps = wraps || name == "find"
	switch {
	case name == "eval":
		return commands, s.evaluated(operands(words))
	case name == "trap":
		handler := operands(words)
		return commands, s.evaluated(handler[:min(1, len(handler))])
	case shells[name]:
		return commands, s.shellScripts(words)
	case !wraps:
	case depth == maxInner:
		s.hide("it wraps one command in too many others")
	default:
		for _, n := range s.wrapped(words, &own) {
			if !s.spend(wordSteps * len(words)) {
				break
			}
			given := supplied(name, words[:n], words[n:])
			if len(given) == 0 {
				continue
			}
			inner, more := s.unwrap(given, depth+1)
			commands = append(append(commands, given), inner...)
			scripts = append(scripts, more...)
		}
	}
	return commands, scripts
}

// wordSteps is how many steps the copy of a word counts for.
const wordSteps = 16

// supplied returns the words of the command that a wrapper runs, with those that it adds: xargs and parallel add words of
// their input, and find adds names of files. own are the wrapper's words before the command.
func supplied(name string, own, words []word) []word {
	further := word{text: "…", shape: anyWords}
	switch name {
	case "find":
		return marked(words, "{}", beginsWith(own))
	case "xargs":
		return append(marked(words, replaced(own, words), ""), further)
	case "parallel":
		if end := slices.IndexFunc(words, func(w word) bool { return strings.HasPrefix(w.text, ":::") }); end >= 0 {
			words = words[:end]
		}
		if len(words) == 0 {
			return nil
		}
		words = slices.Clone(words)
		for i, w := range words {
			if strings.Contains(w.text, "{") { // {}, {.}, {1} and their like
				words[i] = word{text: w.text, shape: anyWords}
			}
		}
		return append(words, further)
	default:
		return words
	}
}

// replaced returns the text for which xargs puts its input.
func replaced(own, words []word) string {
	for i, w := range own[1:] {
		long, found := strings.CutPrefix(w.text, "--replace")
		at := strings.IndexAny(w.text, "Ii")
		switch {
		case found:
			return cmp.Or(strings.TrimPrefix(long, "="), "{}")
		case strings.HasPrefix(w.text, "--") || !strings.HasPrefix(w.text, "-") || at < 0:
		case at+1 < len(w.text):
			return w.text[at+1:]
		case w.text[at] == 'i':
			return "{}"
		case i+2 < len(own):
			return own[i+2].text
		default:
			return words[0].text
		}
	}
	return ""
}

// beginsWith returns how the names of files begin that find finds: as the places where it starts, or with ./.
func beginsWith(own []word) string {
	begin := "."
	for i, w := range own[1:] {
		switch {
		case !w.known || w.text == "":
			return ""
		case strings.Contains("-(!", w.text[:1]):
			return begin
		case w.text[0] != '.' && w.text[0] != '/', i > 0 && begin != w.text[:1]:
			return ""
		}
		begin = w.text[:1]
	}
	return begin
}

// marked returns words in which a mark stands for a text of which only the beginning is known. It copies the words.
func marked(words []word, mark, begin string) []word {
	words = slices.Clone(words)
	for i, w := range words {
		if mark == "" || !w.known || !strings.Contains(w.text, mark) {
			continue
		}
		f := &shape{}
		for j, part := range strings.Split(w.text, mark) {
			if j > 0 {
				f.add(fixed, begin)
				f.add(open, "")
			}
			f.add(fixed, part)
		}
		words[i] = word{text: w.text, shape: f}
	}
	return words
}

// evaluated returns the script that eval runs.
func (s *script) evaluated(words []word) []string {
	parts := make([]string, len(words))
	for i, w := range words {
		if !w.known {
			s.hide("it evaluates a computed script")
			return nil
		}
		parts[i] = w.text
	}
	return []string{strings.Join(parts, " ")}
}

// operands returns the words behind the name of a built-in command, without the mark of the end of its options.
func operands(words []word) []word {
	words = words[1:]
	if len(words) > 0 && words[0].known && words[0].text == "--" {
		return words[1:]
	}
	return words
}
