package rpc

import (
	"regexp"
	"strings"
)

// part is what a part of a pattern allows. The contract's patterns are made of few parts.
type part struct{ expression, name, allows string }

var parts = []part{
	{`[a-z][a-z_]{0,30}\.(read|write)(:[a-z][a-z0-9-]{0,62})?`, "{scope}", "is the name of a scope, such as sessions.read or work.write:ENVIRONMENT"},
	{`[a-z0-9][a-z0-9-]{0,62}`, "{id}", "has 1 to 63 lower-case letters, digits and hyphens, and begins with no hyphen"},
	{`[a-z][a-z0-9-]{0,62}`, "{id}", "has 1 to 63 lower-case letters, digits and hyphens, and begins with a letter"},
	{`[A-Za-z0-9][A-Za-z0-9._-]{0,99}`, "{name}", "has 1 to 100 letters, digits, dots, underscores and hyphens, and begins with a letter or digit"},
	{`[A-Za-z0-9][A-Za-z0-9._-]{0,127}`, "{id}", "has 1 to 128 letters, digits, dots, underscores and hyphens, and begins with a letter or digit"},
	{`[A-Za-z][A-Za-z0-9_-]{0,63}`, "{name}", "has 1 to 64 letters, digits, underscores and hyphens, and begins with a letter"},
	{`[A-Za-z][A-Za-z0-9_-]{0,127}`, "{name}", "has 1 to 128 letters, digits, underscores and hyphens, and begins with a letter"},
	{`[A-Za-z_][A-Za-z0-9_]{0,127}`, "{name}", "has 1 to 128 letters, digits and underscores, and begins with no digit"},
	{`[!-~]{0,128}`, "{key}", "has at most 128 printable ASCII characters and no space"},
	{`[!-~]{1,128}`, "{key}", "has 1 to 128 printable ASCII characters and no space"},
	{`[^/]{1,256}`, "{user}", "has 1 to 256 characters and no slash"},
}

// sayPattern says what a field must be that did not match a pattern. It returns the empty text for a pattern of unknown parts.
func sayPattern(pattern, value string) string {
	form := strings.TrimPrefix(pattern, "^$|")
	form = strings.TrimSuffix(strings.TrimPrefix(form, "^"), "$")
	var last part
	said := map[string]string{}
	for _, p := range parts {
		if strings.Contains(form, p.expression) {
			form, last = strings.ReplaceAll(form, p.expression, p.name), p
			said[p.name] = p.name + " " + p.allows
		}
	}
	form = strings.NewReplacer("(", "", ")?", "").Replace(form)
	if len(said) == 0 || regexp.QuoteMeta(plainForm(form)) != plainForm(form) {
		return ""
	}
	if value == "" {
		return "is required: " + ruleOf(form, last, said)
	}
	return "is not valid: " + ruleOf(form, last, said)
}

// plainForm returns a form without the names of its parts.
func plainForm(form string) string {
	for _, p := range parts {
		form = strings.ReplaceAll(form, p.name, "")
	}
	return form
}

func ruleOf(form string, last part, said map[string]string) string {
	if form == last.name {
		return "it " + last.allows
	}
	rules := []string{"it has the form " + form}
	for _, p := range parts {
		if rule, ok := said[p.name]; ok {
			rules = append(rules, rule)
			delete(said, p.name)
		}
	}
	return strings.Join(rules, "; ")
}
