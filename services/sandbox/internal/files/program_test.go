package files

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/forks/forkstest"
)

// The kernel executes no file that is open for writing, and a process that is just
// being started has what was open when it began.
func TestAProgramMayBeExecutedOnceItIsThere(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, nil)
	d, err := tree.Draft()
	must(t, err)
	defer d.Discard()
	_, err = d.Write([]byte("#!/bin/true\n"))
	must(t, err)
	forkstest.Stall(t)
	_, _, err = tree.Put(d, "program", Target{Mode: 0o755})
	must(t, err)
	must(t, exec.CommandContext(t.Context(), filepath.Join(dir, "program")).Run())
}

// Not even for a moment: there may be a command that waits for the program. Errors that come
// late, when a file is closed, come in time then as well.
func TestWhatIsPutInPlaceIsWrittenByNobody(t *testing.T) {
	s, dir := withMount(t)
	for name, beside := range map[string]string{"f": s.staging, "mnt/f": dir} {
		d, err := s.Draft()
		must(t, err)
		defer d.Discard()
		_, err = d.Write([]byte("x"))
		must(t, err)
		_, _, err = s.Put(d, name, Target{Before: func(p RenameStep, _ Info, _ int64) error {
			f, err := os.Open(filepath.Join(beside, filepath.Base(p.From)))
			if err != nil {
				return err
			}
			// The kernel gives such a lease on no file that is open for writing.
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
			return errors.Join(err, f.Close())
		}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
