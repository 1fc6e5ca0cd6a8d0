package egress

import (
	"slices"
	"strings"
)

// Some servers, and frameworks behind them, take a part of the request from a header instead.
var (
	// overridesHost override the host; only the address's host counts.
	overridesHost = []string{"forwarded", "x-forwarded-host", "x-forwarded-server", "x-host", "x-http-host-override", "x-original-host"}
	// overridesMethod override the method.
	overridesMethod = []string{"x-http-method-override", "x-http-method", "x-method-override", "x-original-method", "x-forwarded-method"}
	// overridesPath override the path, or the part of it that leads to the program that answers (the last
	// ones, of gateways), so that the rest becomes the path.
	overridesPath = []string{
		"x-original-url", "x-original-uri", "x-rewrite-url", "x-forwarded-uri", "x-forwarded-path",
		"x-forwarded-prefix", "x-script-name", "script-name", "path-info",
	}
)

// overrides reports whether a header must be dropped, because it may turn the request into another one than
// the policy allowed. looked means that the method or the path was decisive. Otherwise the client may
// choose both, but never a method that is always forbidden.
func overrides(name string, values []string, looked bool) bool {
	name = folded(name)
	switch {
	case slices.Contains(overridesHost, name):
		return true
	case slices.Contains(overridesMethod, name):
		return looked || slices.ContainsFunc(values, namesRepeating)
	}
	return looked && slices.Contains(overridesPath, name)
}

// namesRepeating reports whether a value names, alone or among others, a method that servers answer with
// the request itself.
func namesRepeating(value string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(value, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }), repeats)
}

// folded returns the name of a header as programs see it that receive it in a variable: each character that
// is neither a letter nor a digit becomes the same character.
func folded(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			return c
		}
		return '-'
	}, name)
}
