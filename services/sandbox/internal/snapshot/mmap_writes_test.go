package snapshot

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mapped has a file of the workspace mapped, as a database has. Nothing else has it open.
func (p *testPlace) mapped(name string) []byte {
	p.t.Helper()
	f, err := os.OpenFile(p.path(name), os.O_RDWR, 0)
	p.must(err)
	st, err := f.Stat()
	p.must(err)
	m, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	p.must(err)
	p.must(f.Close())
	p.t.Cleanup(func() { _ = unix.Munmap(m) })
	return m
}

// known is what the index has of a file.
func (p *testPlace) known(name string) known {
	p.t.Helper()
	l := lookup{remaining: p.store.loadIndex()}
	k, ok := l.find(name)
	if !ok {
		p.t.Fatalf("%s is not in the index", name)
	}
	return k
}

// rest waits until a file that is written now is old enough to be trusted. It is the last one.
func (p *testPlace) rest() {
	p.t.Helper()
	const witness = "~"
	p.write(witness, "x")
	for tried := false; !tried || p.known(witness).ctime == unsteady; tried = true {
		p.must(p.store.Prepare(p.t.Context(), p.tree))
	}
}

// Only the first store to a page gives a file its time. Further ones are to be seen all the
// same, once the file has been read: a process that has it mapped need not even close it.
func TestWhatIsStoredToAMappedFileIsSeen(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]int64{
		"on this file system":              0,
		"on one that hides who has it":     unix.OVERLAYFS_SUPER_MAGIC,
		"on one that writes nothing back":  unix.TMPFS_MAGIC,
		"on one that is the memory's, too": unix.RAMFS_MAGIC,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if kind != 0 {
				p.tree.kind = kind
			}
			p.write("db", string(make([]byte, 2*block)))
			m := p.mapped("db")
			m[0] = '1'
			p.rest()
			p.create("one")
			m[0] = '2'
			if changes, _, err := p.store.Diff(t.Context(), p.tree, DiffRequest{From: "one", Most: 10}); err != nil || len(changes) != 1 {
				t.Errorf("%d files differ from what there was, %v", len(changes), err)
			}
			p.create("two")
			p.restore("one")
			p.holds("db", '1')
			p.restore("two")
			p.holds("db", '2')
		})
	}
}

// A restore that keeps a file, and sets its time alone, knows no more of it than before.
func TestARestoreTrustsNoMappedFileThatItKeeps(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.tree.kind = unix.TMPFS_MAGIC // which has it never trusted
	p.write("db", string(make([]byte, 2*block)))
	p.mapped("db")[0] = '1'
	p.rest()
	p.create("one")
	p.must(unix.UtimesNanoAt(unix.AT_FDCWD, p.path("db"), []unix.Timespec{{}, {Sec: 1}}, 0))
	if did := p.restore("one"); did.Changed == 0 || did.Written != 0 {
		t.Fatalf("the restore did %+v", did)
	}
	if p.known("db").ctime != unsteady {
		t.Error("the index trusts it")
	}
}

// A file that is open elsewhere is read once, as others are, while it has no writer.
func TestAMappedFileThatRestsIsNotReadAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if p.tree.kind == unix.TMPFS_MAGIC {
		t.Skip("such a file system writes nothing back")
	}
	p.write("db", string(make([]byte, 2*block)))
	p.mapped("db")[0] = '1'
	p.rest()
	p.create("one")
	if p.known("db").ctime == unsteady {
		t.Error("the index does not trust it")
	}
}

// holds checks the first byte of a file.
func (p *testPlace) holds(name string, want byte) {
	p.t.Helper()
	if got, err := os.ReadFile(p.path(name)); err != nil || len(got) == 0 || got[0] != want {
		p.t.Errorf("%s begins with %q, want %q, %v", name, got[:min(len(got), 1)], want, err)
	}
}
