package box

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/smalldisk"
)

// leave leaves a file as a crash does.
func leave(t *testing.T, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

func there(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func TestAStartRemovesWhatACrashInterrupted(t *testing.T) {
	o := options(t, &fake{})
	var tidied []string
	o.Upkeep.Tidy = func(dir string) error { tidied = append(tidied, dir); return errors.New("the disk is broken") }
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	left := []string{
		leave(t, o.Dir, "t", "s", "staging", "draft-1"), leave(t, o.Dir, "t", "s", "staging", "removed-1", "f"),
		leave(t, o.Dir, ".probe-1", "workspace", "f"), leave(t, o.Dir, ".quota-1", "f"),
	}
	kept := leave(t, o.Dir, ".egress", "f")
	openNode(t, o)
	for _, name := range left {
		if there(name) {
			t.Errorf("%s is left", name)
		}
	}
	if !there(kept) {
		t.Errorf("%s is gone", kept)
	}
	if want := filepath.Join(o.Dir, "t", "s", "snapshots"); len(tidied) != 1 || tidied[0] != want {
		t.Errorf("of snapshots %v was tidied, want %s", tidied, want)
	}
}

func TestAStartLeavesADraftByWhichAChangeIsDecided(t *testing.T) {
	r := newRecovering(t, Undone)
	n := openNode(t, r.o)
	ensure(t, n, Key{"t", "s"})
	if _, err := r.mutate(n, "a"); err != nil {
		t.Fatal(err)
	}
	draft := leave(t, r.o.Dir, "t", "s", "staging", "draft-1")
	seen := false
	r.o.Upkeep.Recover = func(*Workspace, Interrupted) ([]byte, Fate) {
		seen = there(draft)
		return nil, Undone
	}
	n = r.crash(t, n, "a")
	n = r.crash(t, n) // it was not used in between
	if _, err := r.mutate(n, "b"); err != nil {
		t.Fatal(err)
	}
	if !seen {
		t.Error("it was gone when the change was decided")
	}
	if there(draft) {
		t.Error("it is left when the change has been decided")
	}
}

func TestWhatCannotBeDeletedKeepsNobodyFromStarting(t *testing.T) {
	o := options(t, &fake{})
	n := openNode(t, o)
	for _, session := range []string{"s", "other"} {
		ensure(t, n, Key{"t", session})
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	gone := []string{
		leave(t, o.Dir, trash, "a", "f"), leave(t, o.Dir, trash, "z", "f"), leave(t, o.Dir, "t", "half", "f"),
		leave(t, o.Dir, "t", "s", "staging", "a", "f"), leave(t, o.Dir, "t", "s", "staging", "z", "f"), leave(t, o.Dir, "t", "other", "staging", "f"),
	}
	var free []func()
	for _, dir := range []string{trash + "/m/x", "t/unmade/x", "t/s/staging/m/x"} {
		free = append(free, smalldisk.Lasting(t, filepath.Join(o.Dir, dir)))
	}
	o.Leftovers = erase.NewLater(o.Log)
	n = openNode(t, o)
	for _, name := range gone {
		if there(name) {
			t.Errorf("%s is left", name)
		}
	}
	for _, session := range []string{"s", "other", "unmade"} {
		ensure(t, n, Key{"t", session})
	}
	if left := o.Leftovers.Pending(); left != 3 {
		t.Errorf("%d folders are left", left)
	}
	free[0]()
	if n.tidy(); o.Leftovers.Pending() != 2 {
		t.Errorf("once one can be deleted %d folders are left", o.Leftovers.Pending())
	}
	free[1]()
	free[2]()
	n.tidy()
	if left, err := os.ReadDir(filepath.Join(o.Dir, trash)); len(left) != 0 || err != nil || o.Leftovers.Pending() != 0 {
		t.Errorf("once all can be deleted %v is left, %v", left, err)
	}
}

func TestAWorkspaceIsDeletedWhateverCannotBeDeletedInIt(t *testing.T) {
	o := options(t, &fake{})
	o.Leftovers = erase.NewLater(o.Log)
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	free := smalldisk.Lasting(t, filepath.Join(o.Dir, "t", "s", "workspace", "x"))
	if err := n.Delete(Key{"t", "s"}, 0); err != nil || o.Leftovers.Pending() != 1 {
		t.Errorf("%v, %d folders are left", err, o.Leftovers.Pending())
	}
	ensure(t, n, Key{"t", "s"})
	free()
	if n.tidy(); o.Leftovers.Pending() != 0 {
		t.Error("a folder is left")
	}
}
