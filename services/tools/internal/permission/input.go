package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// speakers hand the words behind their own to a shell, here or elsewhere. Which words are their own is not known of every
// option, so each word may begin the command. The value is the option for a script.
var speakers = map[string]string{
	"docker": "", "flock": "c", "kubectl": "", "parallel": "", "podman": "", "runuser": "c", "script": "c", "sg": "c", "ssh": "", "su": "c", "watch": "",
}

// maxSpoken bounds the words that may begin the command of a speaker.
const maxSpoken = 64

// speak adds the forms of the commands that a speaker may have run. They are only for restricting rules.
func (s *script) speak(c *command, words []word, depth int) {
	name := path.Base(words[0].text)
	option, speaks := speakers[name]
	if !words[0].known || !speaks || depth == maxInner {
		return
	}
	first := 1
	if name == "docker" || name == "kubectl" || name == "podman" {
		first += slices.IndexFunc(words[1:], func(w word) bool { return !w.known || w.text == "exec" || w.text == "run" || w.text == "debug" })
		if first == 0 { // no subcommand that runs a command
			return
		}
		first++
	}
	for i := first; i < len(words); i++ {
		text := words[i].text
		switch {
		case i > maxSpoken:
			s.hide("the program that %s runs is unknown", words[0].text)
			return
		case strings.HasPrefix(text, "-"):
			if !words[i].known && option != "" && strings.Contains(text, option) {
				s.hide(computedScript)
			} else if said := attached(text, option); said != "" {
				s.overhear(c, said, false, depth)
			}
			continue
		case !words[i].known && option != "" && (takesScript(words[i-1].text, option) || name == "sg" && i == 2):
			s.hide(computedScript)
		}
		if !s.spend(8 * wordSteps * (len(words) - i)) {
			return
		}
		shell := shells[path.Base(text)]
		rest := make([]string, len(words)-i)
		for j, w := range words[i:] {
			if rest[j] = w.text; !w.known && !shell {
				rest[j] = strings.TrimSuffix(strings.TrimPrefix(w.text, `"`), `"`) // the quotes are not those of the other shell
			}
		}
		s.overhear(c, strings.Join(rest, " "), shell, depth)
	}
}

// takesScript reports whether the word behind an option is a script.
func takesScript(text, option string) bool {
	return text == "--command" || text == "--session-command" || strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && strings.HasSuffix(text, option)
}

// attached returns the script in the same word as the option for it.
func attached(text, option string) string {
	if strings.HasPrefix(text, "--") || option == "" {
		_, value, _ := strings.Cut(text, "=")
		return value
	}
	_, value, _ := strings.Cut(text, option)
	return value
}

// overhear adds the forms of the commands of a text that a speaker may have run. shell says that the text begins with the
// name of a shell.
func (s *script) overhear(c *command, text string, shell bool, depth int) {
	if key := fmt.Sprint(depth, text); s.spoken[key] {
		return
	} else if s.spoken == nil {
		s.spoken = map[string]bool{key: true}
	} else {
		s.spoken[key] = true
	}
	inner := &script{meter: s.meter, nested: s.nested, within: true, spoken: s.spoken}
	inner.parse(text, depth+1)
	if !s.spend(0) {
		return
	}
	if shell && inner.opaque == computedScript {
		s.hide(computedScript)
	}
	for _, found := range inner.commands {
		if !s.spend(wordSteps * (2 + len(found.variants) + len(found.doubts))) {
			return
		}
		c.variants = append(append(append(c.variants, found.raw), found.words), found.variants...)
		c.doubts = append(c.doubts, found.doubts...)
	}
}

// feed finds the script that a shell reads from its standard input: a here-document, whose
// text is known, or what is not.
func (s *script) feed(n *syntax.Stmt, text string, depth int) {
	call, ok := n.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	name, _ := literal(call.Args[0])
	if _, wraps := wrappers[path.Base(name)]; !wraps && !shells[path.Base(name)] && name != "source" && name != "." || !readsScript(wordsOf(call, text)) {
		return
	}
	for _, r := range n.Redirs {
		switch {
		case depth == maxInner:
		case r.Op == syntax.WordHdoc:
			if value, known := literal(r.Word); known {
				s.parse(value, depth+1)
				return
			}
		case r.Hdoc != nil:
			if body, known := document(r); known {
				s.parse(body, depth+1)
				return
			}
		}
	}
	s.hide("it runs a script from its standard input")
}

// document returns the text of a here-document without expansions.
func document(r *syntax.Redirect) (string, bool) {
	var b strings.Builder
	for _, part := range r.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || !quoted(r.Word) && strings.Contains(lit.Value, `\`) {
			return "", false
		}
		b.WriteString(lit.Value)
	}
	return b.String(), true
}

// readsScript reports whether a command is a shell, perhaps behind wrappers, whose script is its standard input or another
// open file.
func readsScript(words []word) bool {
	for i, w := range words {
		name := path.Base(w.text)
		_, wraps := wrappers[path.Base(words[0].text)]
		switch {
		case !w.known || i > 0 && !wraps:
			return false
		case sources(w):
			file := operands(words[i:])
			return len(file) > 0 && file[0].known && isDevice(file[0].text)
		case shells[name]:
			at, script := shellOperand(words[i:])
			if script {
				return false
			}
			rest := words[i:]
			return at >= len(rest) || isDevice(rest[at].text) || strings.HasPrefix(rest[at].text, "<(") || slices.ContainsFunc(rest[1:at], func(w word) bool {
				return !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "s")
			})
		}
	}
	return false
}

// sources reports whether a program is the shell's own that runs a script of a file.
func sources(w word) bool { return w.text == "source" || w.text == "." }

// isDevice reports whether a file may be an open one, such as the standard input. A relative path may lead there, too.
func isDevice(file string) bool {
	full := path.Clean("/" + file)
	here := strings.TrimPrefix(full, "/")
	return file == "-" || strings.Contains(full, "/dev/") || strings.Contains(full, "/proc/") || strings.Contains(full, "/fd/") ||
		!strings.HasPrefix(file, "/") && (here == "stdin" || strings.Trim(here, "0123456789") == "")
}

// wordsOf returns the words of a simple command.
func wordsOf(n *syntax.CallExpr, text string) []word {
	words := make([]word, len(n.Args))
	for i, w := range n.Args {
		value, ok := literal(w)
		if !ok {
			value = source(w, text)
		}
		words[i] = word{text: value, known: ok}
	}
	return words
}

// expand returns the words of a simple command with the shapes of those that are not literal, and with those that braces
// stand for.
func expand(n *syntax.CallExpr, words []word, text string) []word {
	if !slices.ContainsFunc(words, func(w word) bool { return !w.known }) {
		return words
	}
	all := make([]word, 0, len(words))
	for i, w := range words {
		if w.known {
			all = append(all, w)
		} else {
			all = append(all, expanded(n.Args[i], text)...)
		}
	}
	if len(all) == 0 {
		return words
	}
	return all
}

// evaluators are built-in commands that take the name of a variable, or a number, whose index they evaluate.
var evaluators = []string{"[", "declare", "export", "getopts", "let", "local", "mapfile", "printf", "read", "readarray", "readonly", "test", "typeset", "unset", "wait"}

// deceives says why a built-in command may change which program a name stands for, or run
// what the command line does not show.
func deceives(words, full []word) string {
	name := words[0].text
	for i, w := range words[1:] {
		flags := ""
		if strings.HasPrefix(w.text, "-") {
			flags = w.text
		}
		switch {
		case name == "alias" && (!w.known || strings.Contains(w.text, "=")):
			return "it defines an alias"
		case name == "hash" && (!w.known || strings.Contains(flags, "p")), name == "enable" && (!w.known || flags != ""):
			return "it changes what a name stands for"
		case (name == "mapfile" || name == "readarray") && (!w.known || strings.Contains(flags, "C")):
			return "it evaluates a text for each line"
		case name == "compgen" && (!w.known || strings.ContainsAny(flags, "CFW")):
			return "it evaluates a text"
		case name == "jobs" && (!w.known || strings.Contains(flags, "x")):
			return "it runs a command with the numbers of jobs"
		case i == 0 && sources(words[0]) && !w.known && (len(full) != len(words) || !full[1].file()):
			return "it runs a computed script"
		}
	}
	return ""
}

// file reports whether a word is the name of a file with a literal last name, and not of an open file.
func (w word) file() bool {
	base, ok := w.shape.base()
	return ok && strings.Trim(base, "0123456789") != "" && !strings.HasPrefix(base, "std")
}

// meddles says why a built-in command is more than harmless: it names a variable, whose index bash evaluates, or which
// changes what other commands do.
func meddles(words []word) string {
	name := words[0].text
	sets := "it has a " + name + " that may set or evaluate a variable"
	for _, w := range words[1:] {
		switch name {
		case "printf", "test", "[":
			if strings.HasPrefix(w.text, "-v") || !w.known {
				return sets
			}
			if name == "printf" {
				return "" // options come first
			}
		case "wait":
			if !w.known && w.text != "$!" || strings.HasPrefix(w.text, "-") && w.text != "-n" && w.text != "-f" {
				return sets
			}
		case "read", "mapfile", "readarray", "getopts", "unset":
			// An option may have its value in the same word, as in -aPATH.
			name := strings.TrimPrefix(w.text, "-")
			if i := strings.IndexByte(name, 'a'); i >= 0 && name != w.text {
				name = name[i:]
			} else if name != w.text {
				name = ""
			}
			if !w.known || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				return sets
			}
		}
	}
	return ""
}
