package permission

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal is what a word expands to, when no expansion of any kind is in it.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[{~") {
				return "", false
			}
			b.WriteString(unescape(p.Value, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
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

// unescape takes off backslashes; within double quotes, only those before one
// of the characters given.
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

// word is one word of a command: what it expands to, or, when that is not known,
// how it is written.
type word struct {
	text  string
	known bool
}

// joined writes words as one line; a word that holds a space or nothing at all
// is quoted, so that it cannot pass for two, or none.
func joined(words []word) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = w.text
		if w.known && (w.text == "" || strings.ContainsAny(w.text, " \t\n")) {
			parts[i] = "'" + strings.ReplaceAll(w.text, "'", `'\''`) + "'"
		}
	}
	return strings.Join(parts, " ")
}

// wrappers run the command that follows their own options. The value is how many
// words that are no options come before it.
var wrappers = map[string]int{
	"builtin": 0, "busybox": 0, "command": 0, "doas": 0, "env": 0, "exec": 0, "ionice": 0, "nice": 0, "nohup": 0,
	"setsid": 0, "stdbuf": 0, "sudo": 0, "time": 0, "timeout": 0, "xargs": 0, "chroot": 1,
}

// shells run their `-c` argument as a script.
var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "zsh": true, "ksh": true}

// unwrap finds what a command amounts to: the commands that wrappers run, and
// the scripts that shells and eval run. It is for restricting rules only, which
// it makes harder to walk around by accident; it does not understand every
// option of every program.
func (s *script) unwrap(words []word) (commands [][]word, scripts []string) {
	for range maxInner {
		if !words[0].known {
			s.hide("the name of the program that it runs is computed")
			return commands, scripts
		}
		name := path.Base(words[0].text)
		if name == "eval" {
			return commands, s.evaluated(words[1:])
		}
		if shells[name] {
			return commands, s.shellScripts(words[1:])
		}
		skip, ok := wrappers[name]
		if !ok {
			return commands, scripts
		}
		n := wrapped(words, skip)
		if n >= len(words) {
			return commands, scripts
		}
		words = words[n:]
		commands = append(commands, words)
	}
	s.hide("it wraps one command in too many others")
	return commands, scripts
}

// evaluated is the script that eval runs.
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

// shellScripts finds what follows a shell's -c.
func (s *script) shellScripts(words []word) []string {
	for i, w := range words[:max(0, len(words)-1)] {
		if !strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "--") || !strings.Contains(w.text, "c") {
			continue
		}
		if !words[i+1].known {
			s.hide("it runs a computed script")
			return nil
		}
		return []string{words[i+1].text}
	}
	return nil
}

// wrapped is the index of the word where the command begins that a wrapper runs.
func wrapped(words []word, skip int) int {
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

// isNumber reports a number, or a duration such as `5s`.
func isNumber(w string) bool {
	return w != "" && w[0] >= '0' && w[0] <= '9' && strings.Trim(w, "0123456789.smhd") == ""
}
