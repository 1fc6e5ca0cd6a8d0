package snapshot

import (
	"bytes"
	"errors"
	"testing"
)

// A list of few objects that names one of them again and again would never end.
func TestAListThatGoesRoundIsDamaged(t *testing.T) {
	for name, leaf := range map[string][]byte{
		"without entries": {leafLevel},
		"with one entry":  appendEntry([]byte{leafLevel}, Entry{Path: "a", Kind: Directory, Mode: 0o755}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			w := p.store.packs.writer()
			h, err := w.put(leaf)
			p.must(err)
			for level := byte(1); level <= 3; level++ {
				h, err = w.put(append([]byte{level}, bytes.Repeat(h[:], 100)...))
				p.must(err)
			}
			p.must(w.finish())
			if n := testing.AllocsPerRun(1, func() { _, err = p.store.entries(h) }); n > 10_000 || !errors.Is(err, ErrDamaged) {
				t.Errorf("%v allocations, %v", n, err)
			}
		})
	}
}
