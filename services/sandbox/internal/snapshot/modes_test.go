package snapshot

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestAllBitsOfModesAreKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, name := range []string{"d/f", "gone/f", "shared/below"} {
		p.write(name, "x")
	}
	all := func(set func(name string)) {
		for _, name := range []string{"d/f", "d", "gone/f", "gone", "shared"} {
			set(p.path(name))
		}
	}
	all(func(name string) { p.must(unix.Chmod(name, 0o7755)) })
	p.create("one")
	want := p.capture()
	all(func(name string) { p.must(unix.Chmod(name, 0o755)) })
	p.must(os.RemoveAll(p.path("gone")))
	p.create("two")
	changes, _, err := p.store.Diff(t.Context(), p.tree, DiffRequest{From: "one", To: "two", Path: "d", Most: 10})
	p.must(err)
	if len(changes) != 2 || changes[0].Status != ModeChanged || changes[0].Before.Mode != 0o7755 || changes[0].After.Mode != 0o755 {
		t.Errorf("the changes are %+v", changes)
	}
	p.restore("one")
	if diff := cmp.Diff(want, p.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := p.restore("one"); got != (Restored{}) {
		t.Errorf("restoring what is there did %+v", got)
	}
	p.must(p.store.CopyTo(t.Context(), filepath.Join(p.where, "fork"), "one"))
	fork, err := Open(filepath.Join(p.where, "fork"))
	p.must(err)
	defer func() { p.must(fork.Close()) }()
	p.must(os.RemoveAll(p.path("d")))
	_, err = fork.Restore(t.Context(), p.tree, "one")
	p.must(err)
	if diff := cmp.Diff(want, p.capture()); diff != "" {
		t.Errorf("from a fork (-want +got):\n%s", diff)
	}
}

// A version that kept neither set-user-id nor set-group-id reads 32 bits of a mode, and
// refuses the list if one of them is there.
func TestOlderVersionsReadWhatHasAllBits(t *testing.T) {
	t.Parallel()
	raw := appendEntry(nil, Entry{Path: "d", Kind: Directory, Mode: 0o7755}, "")
	r := reading{b: raw[4:]} // after the kind, and the path
	if mode := uint32(r.uvarint()); mode != 0o1755 {
		t.Errorf("such a version reads the mode %o", mode)
	}
	r = reading{b: raw}
	if e := r.entry(""); e.Mode != 0o7755 || r.fail != nil {
		t.Errorf("this one reads %o, %v", e.Mode, r.fail)
	}
	for _, mode := range []uint64{0o4755, 0o1755 << half, 1 << 63} {
		r = reading{b: append(binary.AppendUvarint(append([]byte(nil), raw[:4]...), mode), 0)}
		if r.entry(""); r.fail == nil {
			t.Errorf("the mode %o is accepted", mode)
		}
	}
}

// What the package says is not kept.
func TestOfNamesOfOneFileAndAttributesNothingIsKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a", "x")
	p.must(os.Link(p.path("a"), p.path("b")))
	if err := unix.Setxattr(p.path("a"), "user.note", []byte("x"), 0); !errors.Is(err, unix.ENOTSUP) {
		p.must(err) // a file system without attributes keeps none either
	}
	p.create("one")
	p.must(errors.Join(os.Remove(p.path("a")), os.Remove(p.path("b"))))
	p.restore("one")
	var a, b unix.Stat_t
	p.must(errors.Join(unix.Stat(p.path("a"), &a), unix.Stat(p.path("b"), &b)))
	if a.Ino == b.Ino {
		t.Error("they are one file")
	}
	if _, err := unix.Getxattr(p.path("a"), "user.note", nil); !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) {
		t.Errorf("the attribute: %v", err)
	}
}
