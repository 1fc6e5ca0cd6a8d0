package files

import (
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// reading is a pattern with its possible meanings: a directory may be called `[id]`, and `{a,b}` may be the
// name of a file. Letters match in every Unicode form.
type reading struct {
	text  string
	globs []string
	forms []string // the globs with letters composed, if they have such
	// fault is why the pattern is invalid as a glob; its literal reading is still valid.
	fault error
}

// literally makes brackets, braces and backslashes literal. Stars and question marks also match themselves
// in any case.
var literally = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)

// readPattern reads a pattern of names in the form of package filename.
func readPattern(p string) reading {
	r := reading{text: p, fault: checkPattern(p)}
	if r.fault == nil {
		r.globs = append(r.globs, p)
	}
	if literal := literally.Replace(p); literal != p || r.fault != nil {
		r.globs = append(r.globs, literal)
	}
	r.forms = composed(r.globs)
	return r
}

// readPatterns reads patterns that must be valid globs.
func readPatterns(patterns []string) ([]reading, error) {
	all := make([]reading, 0, len(patterns))
	for _, p := range patterns {
		r := readPattern(p)
		if r.fault != nil {
			return nil, r.fault
		}
		all = append(all, r)
	}
	return all, nil
}

// composed returns the globs that have non-ASCII characters, with letters composed.
func composed(globs []string) (forms []string) {
	for _, glob := range globs {
		if isWide(glob) {
			forms = append(forms, norm.NFC.String(glob))
		}
	}
	return forms
}

func isWide(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// match reports whether a path matches the pattern in one of its meanings.
func (r reading) match(text string) bool {
	return matches(r.globs, r.forms, text)
}

// matches reports whether a path matches one of the globs, or one of their composed
// forms in its own composed form.
func matches(globs, forms []string, text string) bool {
	for _, glob := range globs {
		if doublestar.MatchUnvalidated(glob, text) {
			return true
		}
	}
	if len(forms) == 0 || !isWide(text) {
		return false
	}
	text = norm.NFC.String(text)
	for _, glob := range forms {
		if doublestar.MatchUnvalidated(glob, text) {
			return true
		}
	}
	return false
}
