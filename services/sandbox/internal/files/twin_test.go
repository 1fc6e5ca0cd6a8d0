package files

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestTwoBytesAtOnceFindWhatIsThere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := make([]byte, r.IntN(120))
		for i := range text {
			text[i] = "ab\x00\x80\xff"[r.IntN(5)]
		}
		what := make([]byte, 1+r.IntN(6))
		for i := range what {
			what[i] = "ab\x00\x80\xff"[r.IntN(5)]
		}
		want := bytes.Index(text, what)
		if got := newTwin(string(what), r.IntN(len(what)), r.IntN(len(what))).index(text, string(what)); got != want {
			t.Fatalf("%q in %q: %d, not %d", what, text, got, want)
		}
		n := newNeedle(string(what), false)
		if got := n.index(text); got != want {
			t.Fatalf("%q in %q by itself: %d, not %d", what, text, got, want)
		}
	}
}

func TestACommonByteDoesNotHideAText(t *testing.T) {
	text := append(bytes.Repeat([]byte("name19(value3 int) name91(value8 int) "), 500), "name99(value8 "...)
	n := newNeedle("name99(value8", false)
	n.tune(text)
	if got, want := n.index(text), len(text)-len("name99(value8 "); got != want || n.twin == nil {
		t.Errorf("%d, not %d; two at once: %v", got, want, n.twin != nil)
	}
}
