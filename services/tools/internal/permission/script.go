package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// maxScriptBytes bounds the length of a parsed script: a rule on commands
// cannot be checked on a longer one.
const maxScriptBytes = 64 << 10

// maxInner bounds the depth of scripts within scripts (`bash -c '…'`).
const maxInner = 4

// script is the parsed command of a Bash call.
type script struct {
	// commands are all simple commands, wherever they are in the script.
	commands []command
	// firsts are the first words of all forms of the commands.
	firsts []string
	// complex says why rules for single commands cannot allow the script.
	complex string
	// opaque says why the programs of the script cannot be determined.
	opaque string
}

// command is one simple command.
type command struct {
	raw      string   // as it is written
	words    string   // without quotes that have no effect
	dynamic  bool     // the name of the program is computed
	variants []string // further forms, for rules that restrict
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
}

// begins adds the first word of a form of a command.
func (s *script) begins(word string) {
	if !slices.Contains(s.firsts, word) {
		s.firsts = append(s.firsts, word)
	}
}

// may reports whether a pattern may match a form of the command.
func (c *command) may(p *pattern) bool {
	return p.first == "" || p.first == c.first || len(c.firsts) > 0 && slices.Contains(c.firsts, p.first)
}

// expected is the number of simple commands that a script has room for at first.
const expected = 8

// parseScript parses a command.
func parseScript(text string) *script {
	s := &script{commands: make([]command, 0, expected), firsts: make([]string, 0, expected)}
	s.parse(text, 0)
	return s
}

func (s *script) hide(format string, args ...any) {
	if s.opaque == "" {
		s.opaque = fmt.Sprintf(format, args...)
	}
	s.complicate("%s", s.opaque)
}

func (s *script) complicate(format string, args ...any) {
	if s.complex == "" {
		s.complex = fmt.Sprintf(format, args...)
	}
}

// parsers are free parsers: each has a buffer.
var parsers = sync.Pool{New: func() any {
	return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
}}

func (s *script) parse(text string, depth int) {
	if len(text) > maxScriptBytes {
		s.hide("it is longer than %d bytes", maxScriptBytes)
		return
	}
	if strings.ContainsRune(text, 0) {
		s.hide("it contains a NUL character")
		return
	}
	if strings.ContainsRune(text, '\r') {
		// The parser takes it for a part of the line's end, bash for a part of a word.
		s.hide("it contains a carriage return")
		return
	}
	parser := parsers.Get().(*syntax.Parser)
	file, err := parser.Parse(strings.NewReader(text), "")
	parsers.Put(parser)
	if err != nil {
		s.hide("it cannot be parsed as a Bash script")
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		s.distrust(n, text)
		s.visit(n, text, depth)
		return true
	})
}

// distrust finds constructs that the parser reads differently from bash, so that a
// command could be hidden from all rules.
func (s *script) distrust(n syntax.Node, text string) {
	switch n := n.(type) {
	case *syntax.Comment:
		if strings.Contains(n.Text, "\\\n") { // to bash the comment ends there
			s.hide("it has a comment that ends in a backslash")
		}
	case *syntax.Redirect:
		// Bash joins the lines before it looks for the end of the document.
		if n.Hdoc != nil && strings.Contains(source(n.Hdoc, text), "\\\n") && !quoted(n.Word) {
			s.hide("it has an unquoted here-document with a backslash at the end of a line")
		}
	case *syntax.ParamExp, *syntax.ArithmExp:
		// Within double quotes, single quotes in an expansion do not quote.
		if strings.Contains(source(n, text), "'") {
			s.hide("it has single quotes in an expansion")
		}
	}
}

// quoted reports whether any part of a word is quoted.
func quoted(w *syntax.Word) bool {
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

// visit examines one node. An unknown node makes the script complex.
func (s *script) visit(n syntax.Node, text string, depth int) {
	switch n := n.(type) {
	case *syntax.Stmt:
		s.feed(n, text, depth)
	case *syntax.CallExpr:
		if len(n.Args) == 0 {
			s.complicate("it sets variables")
			return
		}
		s.add(n, text, depth)
	case *syntax.Redirect:
		if !harmless(n) {
			s.complicate("it redirects to or from a file")
		}
	case *syntax.ForClause:
		s.loop(n)
	case *syntax.ParamExp:
		if !plain(n) {
			s.complicate("it has a parameter expansion that may do more than expand")
		}
	case *syntax.FuncDecl:
		s.complicate("it defines a function")
	case *syntax.DeclClause, *syntax.LetClause, *syntax.ArithmCmd, *syntax.ArithmExp:
		s.complicate("it sets or computes variables")
	case *syntax.TestClause:
		s.complicate("it has a [[ … ]] test")
	case *syntax.CoprocClause, *syntax.TestDecl:
		s.complicate("it has a construct that cannot be checked")
	}
}

// loop allows a loop to set only a variable with a name from which no program
// reads its settings.
func (s *script) loop(n *syntax.ForClause) {
	iter, ok := n.Loop.(*syntax.WordIter)
	if !ok || n.Select || iter.Name == nil || strings.Trim(iter.Name.Value, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		s.complicate("it has a loop that may set variables")
	}
}

// harmless reports whether a redirection touches no file: between descriptors,
// to /dev/null, and here-documents.
func harmless(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	case syntax.DplOut, syntax.DplIn:
		lit := r.Word.Lit()
		return lit != "" && strings.Trim(lit, "0123456789-") == ""
	default:
		return r.Word.Lit() == "/dev/null"
	}
}

// plain reports whether a parameter expansion only reads a variable.
func plain(p *syntax.ParamExp) bool {
	if p.Excl || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 || p.NestedParam != nil {
		return false
	}
	if p.Exp == nil {
		return true
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		return true
	default:
		return false
	}
}

func (s *script) add(n *syntax.CallExpr, text string, depth int) {
	words := wordsOf(n, text)
	c := command{raw: source(n, text), dynamic: !words[0].known}
	if c.dynamic {
		s.hide("the name of the program that it runs is computed")
	}
	plain := c.raw
	if !written(c.raw, words) {
		plain = joined(words)
	}
	if c.words = plain; len(n.Assigns) > 0 {
		// A variable set for one command may change which program runs.
		c.words = c.raw
	}
	if why := meddles(words); why != "" {
		s.complicate("%s", why)
	}
	if why := deceives(words); why != "" {
		s.hide("%s", why)
	}
	unwrapped, inner := s.unwrap(words, 0)
	unwrapped = append(unwrapped, words)
	c.variants = variants(unwrapped, plain, c.words)
	for _, w := range unwrapped {
		c.variants = append(c.variants, spoken(w, depth)...)
	}
	c.begin()
	s.commands = append(s.commands, c)
	s.begins(c.first)
	for _, word := range c.firsts {
		s.begins(word)
	}
	for _, script := range inner {
		if depth == maxInner {
			s.hide("it nests scripts too deeply")
			return
		}
		s.parse(script, depth+1)
	}
}

// variants returns the forms of a command that a restricting rule is tried on:
// unchanged, without wrappers, and each with the program's base name.
func variants(commands [][]word, words, as string) []string {
	var forms []string
	for i, w := range commands {
		line := words // of the last one, which is the command as it is
		if i < len(commands)-1 {
			line = joined(w)
		}
		if i < len(commands)-1 || line != as {
			forms = append(forms, line)
		}
		if name := path.Base(w[0].text); name != w[0].text {
			forms = append(forms, joined(append([]word{{name, true}}, w[1:]...)))
		}
	}
	return forms
}

// allowedBy returns the rule that allows a command.
func (c *command) allowedBy(rules []rule) (string, bool) {
	for i := range rules {
		if p := rules[i].command; p != nil && c.allows(p) {
			return rules[i].text, true
		}
	}
	return "", false
}

// allows reports whether a rule with a pattern allows a command.
func (c *command) allows(p *pattern) bool {
	return c.may(p) && !c.dynamic && (p.match(c.words) || p.match(c.raw))
}

// anyMatches reports whether a restricting rule matches any command.
func (s *script) anyMatches(r *rule) bool {
	if r.command.first != "" && !slices.Contains(s.firsts, r.command.first) {
		return false
	}
	for i := range s.commands {
		if s.commands[i].matches(r) {
			return true
		}
	}
	return false
}

// matches reports whether a restricting rule matches a command in one of its forms.
func (c *command) matches(r *rule) bool {
	return c.may(r.command) && (r.command.match(c.raw) || r.command.match(c.words) || slices.ContainsFunc(c.variants, r.command.match))
}

// source returns the text of a node.
func source(n syntax.Node, text string) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(text) || from > to {
		return ""
	}
	return text[from:to]
}
