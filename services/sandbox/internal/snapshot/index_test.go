package snapshot

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A crash of the machine can take back what was written to a file, and leave the times that
// the writing gave it.
func TestAfterACrashOfTheMachineFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", "written")
	one := p.create("one")
	p.write("f", "crashed") // what was there before, for the disk had not got more
	var st unix.Stat_t
	p.must(unix.Lstat(p.path("f"), &st))
	k := known{path: "f", inode: st.Ino, ctime: st.Ctim.Nano(), mtime: st.Mtim.Nano(), size: st.Size}
	state, err := p.store.entries(one.Root)
	p.must(err)
	k.hash = state[0].Hash
	p.must(p.store.saveIndex([]known{k}))
	if got := p.store.loadIndex(); len(got) != 1 || got[0] != k {
		t.Fatalf("the index is %v", got)
	}
	p.store.boot = "another"
	if _, err := p.store.Restore(t.Context(), p.tree, "one"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(p.path("f")); err != nil || string(got) != "written" {
		t.Errorf("restored %q, %v", got, err)
	}
}
