package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
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

// What a leaf shares with the path before takes no room in it, and as much in memory as all
// else: a few bytes would become as many gigabytes as one likes.
func TestAListOfSharedNamesHasAnEnd(t *testing.T) {
	for name, x := range map[string]struct{ leaves, entries, bytes int }{
		"in one leaf":    {1, leafMost + 1, 10},
		"in many leaves": {3, leafMost, 500_000},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			w := p.store.packs.writer()
			n, nodes := 0, []byte{1}
			for range x.leaves {
				b, previous := []byte{leafLevel}, ""
				for range x.entries {
					e := Entry{Path: strings.Repeat("n", x.bytes) + fmt.Sprintf("%06d", n), Kind: Directory, Mode: 0o755}
					b, previous = appendEntry(b, e, previous), e.Path
					n++
				}
				h, err := w.put(b)
				p.must(err)
				nodes = append(nodes, h[:]...)
			}
			h, err := w.put(nodes)
			p.must(err)
			p.must(w.finish())
			if _, err := p.store.entries(h); !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v", err)
			}
		})
	}
}
