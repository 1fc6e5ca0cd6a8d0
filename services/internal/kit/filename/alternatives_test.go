package filename

import (
	"strings"
	"testing"
)

func TestAlternatives(t *testing.T) {
	for glob, want := range map[string]int{
		"a,b,c": 1, "{a,b}": 2, "{a,b}{c,d,e}": 6, "{a,{b,c}d{e,f}}": 5, `\{a,b}`: 1, "[{],]{a,b}": 2, "{[,],b}": 2, "*.{js,ts}": 2,
		"{a}{b}{{c}}": 1, "{,}": 2, strings.Repeat("{a,b}", 8): 256, strings.Repeat("{a,b}", 60): 257, "{" + strings.Repeat("a,", 300) + "b}": 257,
	} {
		if got := Alternatives(glob, 256); got != want {
			t.Errorf("%s stands for %d globs, not %d", glob, got, want)
		}
	}
}
