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

// wrappers run the command that follows their own options. The value is the
// number of words before it that are not options.
var wrappers = map[string]int{
	"builtin": 0, "busybox": 0, "command": 0, "doas": 0, "env": 0, "exec": 0, "ionice": 0, "nice": 0, "nohup": 0,
	"setsid": 0, "stdbuf": 0, "sudo": 0, "time": 0, "timeout": 0, "xargs": 0, "chroot": 1,
	"chrt": 0, "fakeroot": 0, "flock": 1, "linux32": 0, "linux64": 0, "ltrace": 0, "nsenter": 0, "parallel": 0, "prlimit": 0, "runuser": 0,
	"setarch": 1, "setpriv": 0, "strace": 0, "systemd-run": 0, "taskset": 0, "unshare": 0,
}

// shells run their `-c` argument as a script.
var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "zsh": true, "ksh": true}

// unwrap finds what a command runs: the commands of wrappers, and the scripts
// of shells and eval. It is only for restricting rules, which become harder to
// bypass by accident; it does not understand every option of every program.
func (s *script) unwrap(words []word, depth int) (commands [][]word, scripts []string) {
	name := path.Base(words[0].text)
	skip, wraps := wrappers[name]
	wraps = wraps || name == "find"
	switch {
	case !words[0].known:
		s.hide("the name of the program that it runs is computed")
	case name == "eval":
		return nil, s.evaluated(words[1:])
	case name == "trap" && len(words) > 1:
		return nil, s.evaluated(words[1:2])
	case shells[name]:
		return nil, s.shellScripts(words[1:])
	case !wraps:
	case depth == maxInner:
		s.hide("it wraps one command in too many others")
	case name == "env" && splitsWords(words):
		s.hide("it has env take words apart")
	default:
		for _, n := range s.wrapped(words, skip) {
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
		return marked(words, "{}")
	case "xargs":
		return append(marked(words, replaced(own, words)), further)
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

// marked returns words in which a mark stands for a text that is not known. It copies the words.
func marked(words []word, mark string) []word {
	words = slices.Clone(words)
	for i, w := range words {
		if mark == "" || !w.known || !strings.Contains(w.text, mark) {
			continue
		}
		f := &shape{}
		for j, part := range strings.Split(w.text, mark) {
			if j > 0 {
				f.add(open, "")
			}
			f.add(fixed, part)
		}
		words[i] = word{text: w.text, shape: f}
	}
	return words
}

// splitsWords reports whether env has an option that splits one word into
// several.
func splitsWords(words []word) bool {
	for _, w := range words[1:] {
		if strings.HasPrefix(w.text, "--s") || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "S") {
			return true
		}
		if !strings.HasPrefix(w.text, "-") && !strings.Contains(w.text, "=") {
			return false
		}
	}
	return false
}

// meddles says why a built-in command is more than harmless: printf and test
// with -v name a variable, whose index bash evaluates.
func meddles(words []word) string {
	switch words[0].text {
	case "printf", "test", "[":
	default:
		return ""
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w.text, "-v") || !w.known {
			return "it has a " + words[0].text + " that may set or evaluate a variable"
		}
		if words[0].text == "printf" {
			break // options come first
		}
	}
	return ""
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

// computedScript is the doubt about a script that is not literal.
const computedScript = "it runs a computed script"

// shellScripts finds what follows a shell's -c.
func (s *script) shellScripts(words []word) []string {
	for i, w := range words[:max(0, len(words)-1)] {
		if !strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "--") || !strings.Contains(w.text, "c") {
			continue
		}
		if !words[i+1].known {
			s.hide(computedScript)
			return nil
		}
		return []string{words[i+1].text}
	}
	return nil
}

// maxCandidates bounds the possible starts of a wrapper's command.
const maxCandidates = 4

// wrapped returns the possible starts of a wrapper's command: the first word
// that is not an option and, if that may be the value of an option as in
// `timeout -s KILL 5 rm`, the words behind it.
func (s *script) wrapped(words []word, skip int) []int {
	switch path.Base(words[0].text) {
	case "find":
		return s.executed(words)
	case "xargs":
		if n := behindXargs(words); n > 0 {
			return []int{n}[:min(1, len(words)-n)]
		}
	}
	var all []int
	for n := beginning(words, skip); n < len(words); n += beginning(words[n:], 0) {
		if len(all) == maxCandidates {
			s.hide("the program that %s runs is unknown", words[0].text)
			break
		}
		all = append(all, n)
		if !strings.HasPrefix(words[n-1].text, "-") {
			break
		}
	}
	return all
}

// behindXargs returns the index of the command that xargs runs; 0 if its options leave that open.
func behindXargs(words []word) int {
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case !w.known || strings.HasPrefix(w.text, "--") && w.text != "--" && !strings.Contains(w.text, "="):
			return 0
		case w.text == "--":
			return i + 1
		case !strings.HasPrefix(w.text, "-"):
			return i
		case !strings.HasPrefix(w.text, "--"):
			if flags := strings.TrimLeft(w.text[1:], "0rtpxo"); len(flags) == 1 && strings.Contains("IdnPLsEa", flags) {
				i++ // its value
			}
		}
	}
	return len(words)
}

// executed returns the starts of the commands that find executes.
func (s *script) executed(words []word) []int {
	var all []int
	for i, w := range words[:len(words)-1] {
		switch w.text {
		case "-exec", "-execdir", "-ok", "-okdir":
			if len(all) == maxCandidates {
				s.hide("find executes too many commands")
				return all
			}
			all = append(all, i+1)
		}
	}
	return all
}

// beginning returns the index of the first word, after the one at 0, that is
// neither an option nor a word that a wrapper skips.
func beginning(words []word, skip int) int {
	for i := 1; i < len(words); i++ {
		switch w := words[i].text; {
		case strings.HasPrefix(w, "-"), strings.Contains(w, "=") && !strings.HasPrefix(w, "/"):
		case isNumber(w): // the value of an option, such as `nice -n 5`
		case skip > 0:
			skip--
		default:
			return i
		}
	}
	return len(words)
}

// isNumber reports whether a word is a number, or a duration such as `5s`.
func isNumber(w string) bool {
	return w != "" && w[0] >= '0' && w[0] <= '9' && strings.Trim(w, "0123456789.smhd") == ""
}
