package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// speakers hand the words behind their own to a shell, here or elsewhere. Which words are
// their own is not known of every option, so each word may begin the command.
var speakers = map[string]bool{
	"docker": true, "kubectl": true, "parallel": true, "podman": true, "runuser": true, "script": true, "sg": true, "ssh": true, "su": true, "watch": true,
}

// maxSpoken bounds the words that may begin the command of a speaker.
const maxSpoken = 64

// speak adds the forms of the commands that a speaker may have run. They are only for restricting rules.
func (s *script) speak(c *command, words []word, depth int) {
	if !words[0].known || !speakers[path.Base(words[0].text)] || depth == maxInner {
		return
	}
	for i := 1; i < len(words); i++ {
		if strings.HasPrefix(words[i].text, "-") {
			continue
		}
		if !s.spend(8 * wordSteps * (len(words) - i)) {
			return
		}
		if i > maxSpoken {
			s.hide("the program that %s runs is unknown", words[0].text)
			return
		}
		shell := shells[path.Base(words[i].text)]
		rest := make([]string, len(words)-i)
		for j, w := range words[i:] {
			if rest[j] = w.text; !w.known && !shell {
				rest[j] = strings.TrimSuffix(strings.TrimPrefix(w.text, `"`), `"`) // the quotes are not those of the other shell
			}
		}
		text := strings.Join(rest, " ")
		if key := fmt.Sprint(depth, text); s.spoken[key] {
			continue
		} else if s.spoken == nil {
			s.spoken = map[string]bool{key: true}
		} else {
			s.spoken[key] = true
		}
		inner := &script{meter: s.meter, nested: s.nested, within: true, spoken: s.spoken}
		inner.parse(text, depth+1)
		switch {
		case !s.spend(0):
			return
		case shell && inner.opaque == computedScript:
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
}

// feed finds the script that a shell reads from its standard input: a here-document, whose
// text is known, or what is not.
func (s *script) feed(n *syntax.Stmt, text string, depth int) {
	call, ok := n.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	name, _ := literal(call.Args[0])
	if _, wraps := wrappers[path.Base(name)]; !wraps && !shells[path.Base(name)] || !readsScript(wordsOf(call, text)) {
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

// readsScript reports whether a command is a shell, perhaps behind wrappers, without a
// script of its own.
func readsScript(words []word) bool {
	for i, w := range words {
		if !w.known {
			return false
		}
		name := path.Base(w.text)
		if !shells[name] {
			if _, wraps := wrappers[path.Base(words[0].text)]; i == 0 && !wraps {
				return false
			}
			continue
		}
		for j, arg := range words[i+1:] {
			flag := strings.HasPrefix(arg.text, "-") && !strings.HasPrefix(arg.text, "--")
			switch {
			case flag && strings.Contains(arg.text, "c"):
				return false
			case flag && strings.Contains(arg.text, "s"), arg.text == "/dev/stdin", strings.HasPrefix(arg.text, "<("):
				return true
			case !strings.HasPrefix(arg.text, "-") && (j == 0 || !strings.ContainsAny(words[i+j].text, "oO")):
				return false // the script's file
			}
		}
		return true
	}
	return false
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

// deceives says why a built-in command may change which program a name stands for, or run
// what the command line does not show.
func deceives(words []word) string {
	name := words[0].text
	for _, w := range words[1:] {
		switch {
		case name == "alias" && (!w.known || strings.Contains(w.text, "=")):
			return "it defines an alias"
		case name == "hash" && strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "p"), name == "enable" && strings.HasPrefix(w.text, "-"):
			return "it changes what a name stands for"
		case (name == "mapfile" || name == "readarray") && strings.HasPrefix(w.text, "-C"):
			return "it evaluates a text for each line"
		case (name == "source" || name == ".") && !w.known:
			return "it runs a computed script"
		}
	}
	return ""
}
