package snapshot

import (
	"os"
	"testing"
)

// A file that cannot be looked at is not one that vanished: a snapshot without it would have a
// restore remove it.
func TestAFileThatCannotBeLookedAtIsNotLeftOut(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", "content")
	dir, err := os.Open(p.dir)
	p.must(err)
	if err := (&walk{}).entry(dir, "gone", "gone", 0); err != nil {
		t.Errorf("one that vanished: %v", err)
	}
	p.must(dir.Close()) // as good as a fault of the disk
	if err := (&walk{}).entry(dir, "f", "f", 0); err == nil {
		t.Error("it is left out")
	}
}
