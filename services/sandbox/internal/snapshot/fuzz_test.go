package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzALeafIsReadOrRefused reads what may have come from an object store: no entry
// that is accepted leads outside the workspace, and what is accepted is written as
// it was read.
func FuzzALeafIsReadOrRefused(f *testing.F) {
	var seed []byte
	previous := ""
	for _, e := range []Entry{
		{Path: "a", Kind: Directory, Mode: 0o3755, Mtime: -1},
		{Path: "a/b", Kind: Regular, Mode: 0o644, Mtime: 1 << 60, Size: 7, Hash: Hash{1}},
		{Path: "a/c\xff", Kind: Regular, Size: 1 << 40, Sparse: true},
		{Path: "a-b", Kind: Symlink, Mode: 0o777, Target: "../.."},
	} {
		seed, previous = appendEntry(seed, e, previous), e.Path
	}
	f.Add(seed)
	f.Add(seed[:len(seed)-3])
	f.Add([]byte{byte(Regular), 0, 2, '.', '.'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		leaf, err := readLeaf(raw, &names{})
		if err != nil {
			return
		}
		var again []byte
		previous := ""
		for _, e := range leaf {
			if err := e.valid(); err != nil || previous != "" && !before(previous, e.Path) {
				t.Fatalf("accepted %+v after %q: %v", e, previous, err)
			}
			again, previous = appendEntry(again, e, previous), e.Path
		}
		back, err := readLeaf(again, &names{})
		if diff := cmp.Diff(leaf, back); err != nil || diff != "" {
			t.Fatalf("%v (-read +read again):\n%s", err, diff)
		}
	})
}
