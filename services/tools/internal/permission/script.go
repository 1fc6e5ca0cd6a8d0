package permission

import (
	"fmt"
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
	firsts wordSet
	// complex says why rules for single commands cannot allow the script.
	complex string
	// opaque says why the programs of the script cannot be determined.
	opaque   string
	meter    *meter
	anyFirst bool // the first word of some form may be any
	indexed  bool // it has a text with an index that runs a command, if the shell evaluates the text
	begins   bool // it has a text in which such an index begins, but does not end
	quotes   bool // it has a quoted text with a command
	computes bool // the shell evaluates texts
	nested   int  // how deep the node that is visited lies in expansions
	// within says that the script is what a command may have run by another program, and spoken are the scripts that
	// were looked into for that command.
	within bool
	spoken map[string]bool
}

// maxNesting bounds the expansions around a command, and maxBrackets the open brackets before a character: a parser needs
// a stack for each of them, and each text is part of those around it.
const (
	maxNesting  = 32
	maxBrackets = 512
)

// wordSet is a set of words, in a list while there are few.
type wordSet struct {
	some []string
	all  map[string]bool
}

func (w *wordSet) add(word string) {
	switch {
	case w.has(word):
	case w.all != nil:
		w.all[word] = true
	case len(w.some) < expected:
		w.some = append(w.some, word)
	default:
		w.all = map[string]bool{word: true}
		for _, s := range w.some {
			w.all[s] = true
		}
	}
}

func (w *wordSet) has(word string) bool {
	if w.all != nil {
		return w.all[word]
	}
	return slices.Contains(w.some, word)
}

// expected is the number of simple commands that a script has room for at first.
const expected = 8

// parseScript parses a command.
func parseScript(text string, m *meter) *script {
	s := &script{commands: make([]command, 0, expected), firsts: wordSet{some: make([]string, 0, expected)}, meter: m}
	s.parse(text, 0)
	return s
}

// spend counts steps. Once there are too many of them, nothing about the script is certain.
func (s *script) spend(steps int) bool {
	if s.meter.spend(steps) {
		return true
	}
	s.hide(tooMuch)
	return false
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
	if !s.spend(parseSteps * len(text)) {
		return
	}
	if brackets(text) > maxBrackets {
		s.hide("it nests more than %d brackets", maxBrackets)
		return
	}
	defer s.evaluate()
	parser := parsers.Get().(*syntax.Parser)
	file, err := parser.Parse(strings.NewReader(text), "")
	parsers.Put(parser)
	if err != nil {
		s.hide("it cannot be parsed as a Bash script")
		return
	}
	var around []bool // for each node around: whether it is an expansion
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			if around[len(around)-1] {
				s.nested--
			}
			around = around[:len(around)-1]
			return true
		}
		if s.meter.spent() {
			return false
		}
		expands := expansion(n)
		if expands && s.nested == maxNesting {
			s.hide("it nests more than %d expansions", maxNesting)
			return false
		}
		if expands {
			s.nested++
		}
		around = append(around, expands)
		s.distrust(n, text)
		s.visit(n, text, depth)
		return true
	})
}

// expansion reports whether a node is an expansion, whose text is part of a command's.
func expansion(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp:
		return true
	default:
		return false
	}
}

// brackets returns the most brackets that are open at a time, as far as that is known without a parse.
func brackets(text string) int {
	open, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			open++
			most = max(most, open)
		case ')', '}':
			open = max(0, open-1)
		}
	}
	return most
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
	case *syntax.Word:
		s.read(n)
	case *syntax.Assign:
		if n.Name != nil {
			s.sets(n.Name.Value)
		}
		if n.Value != nil {
			s.sets(spoken(n.Value.Parts)) // the name may reach a variable that refers to another one
		}
		s.index(n.Index, text)
	case *syntax.ArrayElem:
		s.index(n.Index, text)
	case *syntax.ForClause:
		if iter, ok := n.Loop.(*syntax.WordIter); ok && iter.Name != nil {
			s.sets(iter.Name.Value)
		}
	case *syntax.LetClause, *syntax.ArithmCmd, *syntax.TestClause, *syntax.DeclClause:
		s.computes = true
	case *syntax.ParamExp, *syntax.ArithmExp:
		s.computes = true
		if exp, ok := n.(*syntax.ParamExp); ok && exp.Exp != nil && exp.Exp.Op == syntax.OtherParamOps {
			s.hide("it has an expansion that may run commands")
		}
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

// source returns the text of a node.
func source(n syntax.Node, text string) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(text) || from > to {
		return ""
	}
	return text[from:to]
}
