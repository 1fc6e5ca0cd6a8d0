package snapshot

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// aside has a command write to a file of the workspace once a restore has looked at it: what
// the file holds is as the restore wants it, its time is not.
func (p *testPlace) aside(name string, command func() error) {
	p.t.Helper()
	p.write(name, "AAAA")
	p.write("other", "one")
	p.rest()
	p.create("one")
	p.age(name)
	p.write("other", "two!")
	p.rest()
	began := false
	p.tree.Room = func(int64, int64) error {
		if began {
			return nil
		}
		began = true
		return command()
	}
	p.restore("one")
	p.tree.Room = nil
	if !began {
		p.t.Fatal("no command ran beside the restore")
	}
}

// What a command writes beside a restore is later than that: it stays, with its time, and the
// next snapshot and the next difference have it.
func TestWhatIsWrittenBesideARestoreIsNotForgotten(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	begun := time.Now().Add(-time.Second) // the kernel's clock is a coarse one
	p.aside("db", func() error { return os.WriteFile(p.path("db"), []byte("BBBB"), 0o600) })
	if st, err := os.Stat(p.path("db")); err != nil || st.ModTime().Before(begun) {
		t.Errorf("its time is %v, %v: nothing tells of the write", st.ModTime(), err)
	}
	if changes, _, err := p.store.Diff(t.Context(), p.tree, DiffRequest{From: "one", Most: 10}); err != nil || len(changes) != 1 {
		t.Errorf("%+v differ, %v", changes, err)
	}
	p.rest()
	p.create("two")
	p.must(os.Remove(p.path("db")))
	p.restore("two")
	p.holds("db", 'B')
}

// Nor is what is written between the look at a file's time and the setting of it, of which
// its times tell nothing.
func TestAFileThatARestoreGaveItsTimeIsReadAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.aside("db", func() error { return nil })
	st, err := os.Stat(p.path("db"))
	p.must(err)
	if p.trusts("db") {
		t.Error("the index trusts it")
	}
	p.must(errors.Join(os.WriteFile(p.path("db"), []byte("BBBB"), 0o600), os.Chtimes(p.path("db"), time.Time{}, st.ModTime())))
	p.create("two")
	p.must(os.Remove(p.path("db")))
	p.restore("two")
	p.holds("db", 'B')
	p.rest()
	if !p.trusts("db") {
		t.Error("the index does not trust it though it was read since")
	}
}

// A file of which a restore sets the permissions alone shows a write: it need not be read again.
func TestAFileOfWhichARestoreSetsThePermissionsIsTrusted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for i := range 3 {
		p.write(fmt.Sprintf("f%d", i), "x")
		p.age(fmt.Sprintf("f%d", i))
	}
	p.rest()
	p.create("one")
	p.must(unix.Chmod(p.path("f1"), 0o755))
	p.rest()
	if did := p.restore("one"); did.Changed == 0 {
		t.Fatalf("the restore did %+v", did)
	}
	if !p.trusts("f1") {
		t.Error("the index does not trust it")
	}
}

// trusts reports whether a file would not be read again as it is.
func (p *testPlace) trusts(name string) bool {
	p.t.Helper()
	var st unix.Stat_t
	p.must(unix.Lstat(p.path(name), &st))
	return p.known(name).matches(&st)
}
