package box

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// keeper is a Quota that notes what it is asked for.
type keeper struct {
	asked []string
	err   error
}

func (k *keeper) Keep(slot int, bytes, inodes int64, folders ...string) error {
	for i, f := range folders {
		folders[i] = filepath.Base(f)
	}
	k.asked = append(k.asked, fmt.Sprint("keep ", slot, " ", bytes, " ", inodes, " ", folders))
	return k.err
}

func (k *keeper) Release(slot int) error {
	k.asked = append(k.asked, fmt.Sprint("release ", slot))
	return nil
}

func TestTheFileSystemIsToldTheSizeOfAWorkspace(t *testing.T) {
	k := &keeper{}
	o := options(t, &fake{})
	o.Quota = k
	n := openNode(t, o)
	seed := func(*Workspace) error { return nil }
	for _, want := range []Want{{Limits: &Lower{WorkspaceBytes: 70_000}}, {Limits: &Lower{WorkspaceBytes: 70_000}}, {}, {Limits: &Lower{WorkspaceInodes: 20}}} {
		if _, err := n.Ensure(testCall("x"), 0, want, seed); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Delete(testCall("x").Key, 0); err != nil {
		t.Fatal(err)
	}
	k.err = errors.New("no quota")
	if _, err := n.Ensure(testCall("x"), 0, Want{}, seed); !errors.Is(err, ErrIsolation) {
		t.Errorf("where the file system refuses: %v", err)
	}
	if got := []string{
		"keep 0 70000 100 [workspace home staging]", "keep 0 1048576 20 []", "release 0",
		"keep 0 1048576 100 [workspace home staging]", "release 0",
	}; !slices.Equal(k.asked, got) {
		t.Errorf("it was asked %q", k.asked)
	}
}
