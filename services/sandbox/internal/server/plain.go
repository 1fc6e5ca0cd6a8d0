package server

import (
	"strings"
	"unicode"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// plain is a message for people. It may name a file or a host that a command chose:
// what would steer a terminal is replaced, and what is no text is written as in paths.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) && !filename.Escapes(r) {
			return unicode.ReplacementChar
		}
		return r
	}, filename.Encode(s))
}
