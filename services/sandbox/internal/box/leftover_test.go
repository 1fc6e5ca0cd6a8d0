package box

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
	o.Tidy = func(dir string) error { tidied = append(tidied, dir); return errors.New("the disk is broken") }
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
	r.o.Recover = func(*Workspace, Interrupted) ([]byte, Fate) {
		seen = there(draft)
		return nil, Undone
	}
	n = r.crash(t, n, "a")
	n = r.crash(t, n) // nobody has used it in between
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
