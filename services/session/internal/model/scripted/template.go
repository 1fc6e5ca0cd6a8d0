package scripted

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxFill bounds the text of one placeholder.
const maxFill = 16 << 10

var (
	placeholder  = regexp.MustCompile(`\{\{\s*\.(\w+)\s*\}\}`)
	placeholders = "{{ .UserText }}, {{ .LastToolResult }}, {{ .LastOperation }}"

	operation = regexp.MustCompile(`operations/[a-zA-Z0-9._-]*[a-zA-Z0-9]`)
)

// checkTemplate refuses unknown placeholders.
func checkTemplate(s string) error {
	for _, m := range placeholder.FindAllStringSubmatch(s, -1) {
		if m[1] != "UserText" && m[1] != "LastToolResult" && m[1] != "LastOperation" {
			return fmt.Errorf("unknown placeholder %s; there are %s", m[0], placeholders)
		}
	}
	return nil
}

// fill replaces the placeholders in s. It does not look for placeholders in the
// inserted text.
func (c conversation) fill(s string) string {
	if !strings.Contains(s, "{{") {
		return s
	}
	return placeholder.ReplaceAllStringFunc(s, func(m string) string {
		switch placeholder.FindStringSubmatch(m)[1] {
		case "UserText":
			return clip(c.userText)
		case "LastOperation":
			return clip(c.lastOperation)
		}
		return clip(c.lastResult)
	})
}

// clip shortens s to maxFill bytes at a rune's end.
func clip(s string) string {
	if len(s) <= maxFill {
		return s
	}
	n := maxFill
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// words cuts s into words, each with the white space after it, so that the
// pieces add up to s. A placeholder is not cut.
func words(s string) []string {
	var out []string
	whole := placeholder.FindAllStringIndex(s, -1)
	start, space := 0, false
	for i, r := range s {
		for len(whole) > 0 && i >= whole[0][1] {
			whole = whole[1:]
		}
		if len(whole) > 0 && i > whole[0][0] {
			space = false
			continue
		}
		isSpace := r == ' ' || r == '\n' || r == '\t'
		if space && !isSpace {
			out = append(out, s[start:i])
			start = i
		}
		space = isSpace
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// cut divides s into pieces of about n bytes, at runes' ends.
func cut(s string, n int) []string {
	var out []string
	for len(s) > n {
		end := n
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}
