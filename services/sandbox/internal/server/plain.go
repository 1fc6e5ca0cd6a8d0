package server

import (
	"strings"
	"unicode"
)

// plain is a message for people. It may name a file or a host that a command chose:
// what would steer a terminal, or is no text, is replaced.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
