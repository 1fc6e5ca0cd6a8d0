package files

import (
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// reading is a pattern in the ways in which it can be meant: a directory may be called
// `[id]`, and `{a,b}` may be the name of a file. Letters match in every Unicode form.
type reading struct {
	globs []string
	forms []string // the globs with letters composed, if they have such
	// fault is why the pattern is not valid as a glob; its literal reading still is.
	fault error
}

// literally takes the meaning from brackets, braces and backslashes. Stars and question
// marks match themselves in any case.
var literally = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)

// readPattern reads a pattern, of names as package filename writes them.
func readPattern(p string) reading {
	r := reading{fault: checkPattern(p)}
	if r.fault == nil {
		r.globs = append(r.globs, p)
	}
	if literal := literally.Replace(p); literal != p || r.fault != nil {
		r.globs = append(r.globs, literal)
	}
	for _, glob := range r.globs {
		if isWide(glob) {
			r.forms = append(r.forms, norm.NFC.String(glob))
		}
	}
	return r
}

func isWide(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// match reports whether a path matches the pattern in one of its meanings.
func (r reading) match(text string) bool {
	for _, glob := range r.globs {
		if doublestar.MatchUnvalidated(glob, text) {
			return true
		}
	}
	if len(r.forms) == 0 || !isWide(text) {
		return false
	}
	text = norm.NFC.String(text)
	for _, glob := range r.forms {
		if doublestar.MatchUnvalidated(glob, text) {
			return true
		}
	}
	return false
}
