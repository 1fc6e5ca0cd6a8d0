package files

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// After a crash a command may have closed the folder of a file that was to be deleted.
func TestWhatCannotBeLookedForIsNotTakenForGone(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"d/f": "x"})
	s, err := tree.With(nil)
	must(t, err)
	file, err := s.Mark("d/f", false)
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Chmod(filepath.Join(dir, "d"), 0))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if os.Getuid() == 0 { // nothing is closed to root; the thread ends with the function
			runtime.LockOSThread()
			if err := unix.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		for _, step := range []RenameStep{{File: file, From: "d/f"}, {File: file, From: "d/f", To: "g"}} {
			if taken, known := s.Taken(step, true); known {
				t.Errorf("%+v was taken: %v", step, taken)
			}
		}
	}()
	<-ended
	must(t, os.Chmod(filepath.Join(dir, "d"), 0o755))
}
