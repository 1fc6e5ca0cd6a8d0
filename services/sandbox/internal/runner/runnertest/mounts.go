package runnertest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// mountTests check what sandboxes show of the host besides their workspace.
var mountTests = []test{
	{"mounts are where they belong, with the rights that they give", []need{mounts}, testMounts},
	{"a folder of the workspace's own can be closed to commands", []need{mounts}, testOwnMount},
	{"who has no mount sees nothing of it", []need{mounts}, testNoMount},
	{"other mounts are another sandbox", []need{mounts}, testOtherMounts},
	{"a mount whose source is gone is no sandbox", []need{mounts}, testLostMount},
}

// keeper returns the owner of the mounts' files on disk.
func (s Subject) keeper() box.Owner {
	if !s.Has.Mapped {
		return s.Owner
	}
	return box.Owner{UID: 200888, GID: 200888}
}

// source makes a folder of the host with one file, whose name is its content.
func (s Subject) source(t *testing.T, name string) string {
	t.Helper()
	in := s.Sources
	if in == "" { // not below /tmp, which every sandbox has itself
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		in = home
	}
	dir, err := os.MkdirTemp(in, "fairlead-mounts-")
	if err == nil && s.Sources != "" {
		err = os.Chmod(dir, 0o711) //nolint:gosec // the user that is root of a container passes through
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	at := filepath.Join(dir, name)
	file := filepath.Join(at, "file")
	if err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(file, []byte(name+"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if s.Owner != box.Self {
		if err := errors.Join(os.Chown(at, s.keeper().UID, s.keeper().GID), os.Chown(file, s.keeper().UID, s.keeper().GID)); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// mounted returns a command in a workspace with mounts, and with the folders that they lie over.
func (s Subject) mounted(t *testing.T, script string, all ...box.Mount) box.Command {
	t.Helper()
	c := s.command(t, script)
	for i, m := range all {
		if m.Writable && s.Owner != box.Self {
			all[i].Disk = s.keeper()
		}
		at := filepath.Join(c.Sandbox.Workspace, m.Point())
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if s.Owner != box.Self {
			if err := os.Chown(at, s.Owner.UID, s.Owner.GID); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Sandbox.Mounts = box.EncodeMounts(all)
	return c
}

func testMounts(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	books, shared, models := s.source(t, "books"), s.source(t, "shared"), s.source(t, "models")
	c := s.mounted(t, `cat mnt/deep/books/file shared/file `+models+`/file models/file
		echo new > shared/new; stat -c %u shared/file shared/new
		for at in mnt/deep/books/x mnt/x mnt/deep/x models/x `+models+`/x; do touch $at 2>/dev/null && echo BROKEN $at; done
		for at in mnt shared models; do mv $at other 2>/dev/null && echo BROKEN $at; done
		rmdir shared 2>/dev/null && echo BROKEN; rmdir mnt/deep/books 2>/dev/null && echo BROKEN; ls`,
		box.Mount{Name: "mnt", Alias: "mnt", Cover: true},
		box.Mount{Name: "books", Source: books, Alias: "mnt/deep/books"},
		box.Mount{Name: "shared", Source: shared, Alias: "shared", Writable: true},
		box.Mount{Name: "models", Source: models, Alias: "models", Original: true},
	)
	run(t, r, c).ran(t, "the command", "books\nshared\nmodels\nmodels\n1000\n1000\nmnt\nmodels\nshared\n")
	st, err := os.Stat(filepath.Join(shared, "new"))
	if err != nil {
		t.Fatal(err)
	}
	want := s.keeper().UID
	if s.Owner == box.Self {
		want = os.Getuid()
	}
	if got := st.Sys().(*syscall.Stat_t).Uid; int(got) != want {
		t.Errorf("on the disk it belongs to %d, want %d", got, want)
	}
}

func testOwnMount(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.mounted(t, `cat own/file; echo BROKEN >own/file; mv own other; touch own/x; ls own`, box.Mount{Name: "own", Alias: "own"})
	if err := os.WriteFile(filepath.Join(c.Sandbox.Workspace, "own", "file"), []byte("kept\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(t, r, c).ran(t, "the command", "kept\nfile\n")
}

func testNoMount(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	hidden := s.source(t, "hidden")
	m := box.Mount{Name: "hidden", Source: hidden, Alias: "hidden", Original: true}
	run(t, r, s.mounted(t, "cat hidden/file "+hidden+"/file", m)).ran(t, "who has it", "hidden\nhidden\n")
	x := run(t, r, s.command(t, "cat /proc/self/mountinfo; ls -d "+hidden+"; ls / $HOME/..; ls -A"))
	if strings.Contains(x.out, "hidden") {
		t.Errorf("who does not have it sees %s", x.out)
	}
}

func testOtherMounts(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	c := s.mounted(t, mark, box.Mount{Name: "one", Source: s.source(t, "one"), Alias: "one"})
	run(t, r, c)
	if !marked(t, r, c) {
		t.Error("with the same mounts it is another one")
	}
	c.Sandbox.Mounts = ""
	if marked(t, r, c) {
		t.Error("without them it is the same")
	}
	run(t, r, with(c, "ls -A one")).ran(t, "the place", "")
}

func testLostMount(t *testing.T, s Subject) {
	r := s.New(t, Options{})
	at := s.source(t, "lost")
	c := s.mounted(t, "echo BROKEN", box.Mount{Name: "lost", Source: at, Alias: "lost"})
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if p, err := r.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "mount lost") {
		if err == nil {
			finish(p)
		}
		t.Errorf("it says %v", err)
	}
	c.Sandbox.Mounts = ""
	run(t, r, with(c, "echo fine")).ran(t, "without it", "fine\n")
}
