package files

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestANeedleIsFoundWhereItIs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(most int) []byte {
		b := make([]byte, r.IntN(most))
		for i := range b {
			b[i] = "abAB(\x80\xff"[r.IntN(7)]
		}
		return b
	}
	for range 20_000 {
		text, what := some(120), append(some(6), 'a')
		if got, want := newNeedle(string(what), false).index(text), bytes.Index(text, what); got != want {
			t.Fatalf("%q in %q: %d, not %d", what, text, got, want)
		}
		folded := asciiLower(what)
		if got, want := newNeedle(string(folded), true).index(text), bytes.Index(asciiLower(text), folded); got != want {
			t.Fatalf("%q in either case in %q: %d, not %d", what, text, got, want)
		}
	}
}

func asciiLower(b []byte) []byte {
	lower := make([]byte, len(b))
	for i := range b {
		lower[i] = lowerCase(b[i])
	}
	return lower
}
