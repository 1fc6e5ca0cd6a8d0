package egress

import (
	"slices"
	"strings"
)

// Some servers, and frameworks behind them, take a part of the request from a header instead.
var (
	// overridesHost are for the host, of which there is one alone: the address's.
	overridesHost = []string{"forwarded", "x-forwarded-host", "x-forwarded-server", "x-host", "x-http-host-override", "x-original-host"}
	// overridesMethod are for the method.
	overridesMethod = []string{"x-http-method-override", "x-http-method", "x-method-override", "x-original-method", "x-forwarded-method"}
	// overridesPath are for the path, or for how much of it leads to the program that answers
	// (the last ones, of gateways): the rest is the path then.
	overridesPath = []string{
		"x-original-url", "x-original-uri", "x-rewrite-url", "x-forwarded-uri", "x-forwarded-path",
		"x-forwarded-prefix", "x-script-name", "script-name", "path-info",
	}
)

// overrides says whether a header is to be left out, because it may stand for another request
// than the one that was decided on. looked says that the method or the path was decisive: else
// they are the client's to choose, but for a method that was never allowed.
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

// namesRepeating says whether a value names, alone or among others, a method whose answer is
// the request.
func namesRepeating(value string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(value, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }), repeats)
}

// folded is the name of a header as programs see it to which a server hands it by a variable:
// all that is no letter and no digit has become one character there.
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
