package server

import "testing"

func TestAMessageSteersNoTerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"there is no file ä b: 1\t\n": "there is no file ä b: 1\t\n",
		"a\x1b]0;evil\x07":            "a\uFFFD]0;evil\uFFFD",
		"a\u009b2J\u202eb":            "a\uFFFD2J\uFFFDb",
		"a\xff\x00\x7f":               "a\uEFFF\uFFFD\uFFFD",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}
