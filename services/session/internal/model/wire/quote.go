package wire

import (
	"regexp"
	"strings"
	"unicode"
)

// keyLike matches keys of well-known providers, even cut or masked, and what
// follows the name of a scheme.
var keyLike = regexp.MustCompile(`(?i)\b(?:sk|pk|gsk|xai|tgp|hf|fw|nvapi|csk)[-_][a-z0-9*._-]{6,}|\bAIza[a-z0-9*._-]{6,}|\beyJ[a-z0-9._-]{20,}|\bbearer\s+[^\s,;'"]*[0-9][^\s,;'"]*|[a-z0-9._-]*\*{3,}[a-z0-9*._-]*`)

// maxQuoted bounds the examined part of a message, in bytes.
const maxQuoted = 16 << 10

// Quote makes a provider's message fit for people: on one line, not too long,
// without the key, a part of it, or text that looks like another key.
func Quote(message, key string) string {
	message = strings.Map(printable, message[:min(len(message), maxQuoted)])
	if key != "" {
		message = strings.ReplaceAll(message, key, "[key]")
	}
	message = keyLike.ReplaceAllString(message, "[key]")
	words := strings.Fields(message)
	for i, w := range words {
		if partOf(strings.Trim(w, `.,:;'"()…`), key) {
			words[i] = "[key]"
		}
	}
	message = strings.Join(words, " ")
	const most = 300
	if r := []rune(message); len(r) > most {
		message = string(r[:most]) + "…"
	}
	return message
}

// printable drops control characters, which a terminal would interpret.
func printable(r rune) rune {
	if unicode.IsPrint(r) || unicode.IsSpace(r) {
		return r
	}
	return -1
}

// partOf reports whether a word is a long part of the key.
func partOf(word, key string) bool { return len(word) >= 8 && strings.Contains(key, word) }
