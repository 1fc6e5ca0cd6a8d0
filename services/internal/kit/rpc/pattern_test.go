package rpc

import "testing"

func TestAPatternIsSaidInWords(t *testing.T) {
	const id = "{id} has 1 to 63 lower-case letters, digits and hyphens, and begins with no hyphen"
	for _, c := range []struct{ pattern, value, want string }{
		{`^sessions/[a-z0-9][a-z0-9-]{0,62}$`, "one", "is not valid: it has the form sessions/{id}; " + id},
		{`^sessions/[a-z0-9][a-z0-9-]{0,62}$`, "", "is required: it has the form sessions/{id}; " + id},
		{`^$|^sessions/[a-z0-9][a-z0-9-]{0,62}/turns/[a-z0-9][a-z0-9-]{0,62}$`, "x", "is not valid: it has the form sessions/{id}/turns/{id}; " + id},
		{`^(sessions/[a-z0-9][a-z0-9-]{0,62})?$`, "x", "is not valid: it has the form sessions/{id}; " + id},
		{`^[A-Za-z][A-Za-z0-9_-]{0,63}$`, "my tool", "is not valid: it has 1 to 64 letters, digits, underscores and hyphens, and begins with a letter"},
		{`^[!-~]{1,128}$`, "", "is required: it has 1 to 128 printable ASCII characters and no space"},
		{`^sessions/[a-z0-9][a-z0-9-]{0,62}/repositories/[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`, "x", "is not valid: it has the form sessions/{id}/repositories/{name}; " + id +
			"; {name} has 1 to 100 letters, digits, dots, underscores and hyphens, and begins with a letter or digit"},
		{`^[a-z][a-z_]{0,30}\.(read|write)(:[a-z][a-z0-9-]{0,62})?$`, "sessions.red", "is not valid: it is the name of a scope, such as sessions.read or work.write:ENVIRONMENT"},
		{`^[a-z]+/[A-Za-z0-9.+-]{1,100}$`, "png", ""},
		{`^(a|b)$`, "c", ""},
	} {
		if got := sayPattern(c.pattern, c.value); got != c.want {
			t.Errorf("%s: got %q, want %q", c.pattern, got, c.want)
		}
	}
}
