package transport

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	// keyLike matches keys of well-known providers, even cut or masked.
	keyLike = regexp.MustCompile(`(?i)\b(?:sk|pk|gsk|xai|tgp|hf|fw|nvapi|csk|r8|gh[opsur]|github_pat|glpat|xox[a-z])[-_][a-z0-9*._-]{6,}|\b(?:AKIA|ASIA|AIza)[a-z0-9*._-]{6,}|\beyJ[a-z0-9._-]{20,}|[a-z0-9._-]*\*{3,}[a-z0-9*._-]*`)

	userinfo = regexp.MustCompile(`://[^\s/@]+@`)
	query    = regexp.MustCompile(`([?&][\w.\-]+=)[^\s&#"'<>` + "`" + `)]+`)

	// named matches a value behind the name of a secret; hinted one behind a word that
	// ordinary messages use as well.
	named  = regexp.MustCompile(`(?i)((?:api[-_ ]?key|secret|password|passwd|authorization|(?:key|token))` + assign + `)((?:(?:bearer|basic)\s+)?[^\s,;&"'<>)\]}` + "`" + `]+)`)
	hinted = regexp.MustCompile(`(?i)(\b(?:key|token|secret|password|authorization)\s+[("'<‹` + "`" + `]?|\b(?:bearer|basic)\s+)([^\s(\[,;&"'<>)\]}` + "`" + `]+)`)

	run = regexp.MustCompile(`[A-Za-z0-9_\-+/=.]{6,}`)
	cut = regexp.MustCompile(`([A-Za-z0-9_-]{2,})(?:…|\.{2,}|\*{2,})([A-Za-z0-9_-]*)`)
)

// assign is what stands between a name and its value.
const assign = "[\"'`]?\\s*[:=]\\s*[\"'`]?"

// maxQuoted bounds the examined part of a message, in bytes.
const maxQuoted = 16 << 10

// Quote makes a provider's message fit for people: on one line, not too long,
// without the key, a part of it, or text that looks like another key.
func Quote(message, key string) string {
	message = strings.Map(printable, message[:min(len(message), maxQuoted)])
	key = strings.ToValidUTF8(key, "")
	if key != "" {
		message = regexp.MustCompile("(?i)"+regexp.QuoteMeta(key)).ReplaceAllString(message, "[key]")
	}
	message = keyLike.ReplaceAllString(message, "[key]")
	message = userinfo.ReplaceAllString(message, "://[key]@")
	message = query.ReplaceAllString(message, "${1}[key]")
	message = maskValues(message)
	message = strings.Join(strings.Fields(maskParts(message, strings.ToLower(key))), " ")
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

// maskValues masks what follows the name of a secret. Ordinary words behind
// `key:`, `token` and the like stay.
func maskValues(message string) string {
	message = named.ReplaceAllStringFunc(message, func(s string) string {
		m := named.FindStringSubmatch(s)
		weak := strings.ToLower(m[1])
		if (strings.HasPrefix(weak, "key") || strings.HasPrefix(weak, "token")) && !strings.Contains(weak, "=") && !secretLike(m[2]) {
			return s
		}
		return m[1] + "[key]"
	})
	return hinted.ReplaceAllStringFunc(message, func(s string) string {
		m := hinted.FindStringSubmatch(s)
		if !secretLike(m[2]) {
			return s
		}
		if scheme := strings.ToLower(m[1]); strings.HasPrefix(scheme, "b") {
			return "[key]"
		}
		return m[1] + "[key]"
	})
}

// secretLike reports whether a word is no ordinary one: it is long, or has six
// characters and a digit, or a capital letter after a small one.
func secretLike(word string) bool {
	word = strings.TrimRight(word, ".:!?")
	small, mixed := false, false
	for _, r := range word {
		mixed = mixed || unicode.IsDigit(r) || small && unicode.IsUpper(r)
		small = small || unicode.IsLower(r)
	}
	return len(word) >= 24 || len(word) >= 6 && mixed
}

// partLength is the length from which a part of the key is masked.
const partLength = 6

// maskParts masks every run of characters that has a part of the key, which is in
// lower case.
func maskParts(message, key string) string {
	if len(key) < partLength {
		return message
	}
	parts := map[string]bool{}
	for i := range len(key) - partLength + 1 {
		parts[key[i:i+partLength]] = true
	}
	message = cut.ReplaceAllStringFunc(message, func(s string) string {
		m := cut.FindStringSubmatch(strings.ToLower(s))
		if strings.HasPrefix(key, m[1]) || m[2] != "" && strings.HasSuffix(key, m[2]) {
			return "[key]"
		}
		return s
	})
	return run.ReplaceAllStringFunc(message, func(s string) string {
		lower := strings.ToLower(s)
		for i := range len(lower) - partLength + 1 {
			if parts[lower[i:i+partLength]] {
				return "[key]" + s[len(strings.TrimRight(s, ".")):]
			}
		}
		return s
	})
}
