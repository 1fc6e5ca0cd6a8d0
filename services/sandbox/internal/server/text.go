package server

import (
	"strings"
	"unicode"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// plain cleans a message for people, which may name a file or a host that a command chose. It replaces
// terminal controls, and encodes invalid text as in paths.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) && !filename.Escapes(r) {
			return unicode.ReplacementChar
		}
		return r
	}, filename.Encode(s))
}
