package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A command may change files while they are restored, where nothing stops it. Whatever the
// kernel says then is told as that.
func TestARestoreThatACommandRunsAgainstSaysSo(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(d string){
		"a link": func(d string) {
			_ = unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, d+"-link", unix.RENAME_EXCHANGE)
		},
		"a file": func(d string) {
			_ = unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, d+"-file", unix.RENAME_EXCHANGE)
		},
		"nothing": func(d string) {
			_ = errors.Join(os.Rename(d, d+"-away"), os.Rename(d+"-away", d))
		},
		"more": func(d string) {
			_ = errors.Join(os.Mkdir(d, 0o755), os.WriteFile(d+"/more", nil, 0o600), os.Mkdir(d+"/f", 0o755), os.Mkdir(d+"/surplus", 0o755), os.WriteFile(d+"/surplus/x", nil, 0o600))
		},
		"closed": func(d string) {
			_ = errors.Join(os.Chmod(d, 0), os.Mkdir(d+"/new", 0o755), os.Chmod(d, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			for _, name := range []string{"d/e/f", "d/f", "d-file"} {
				p.write(name, name)
			}
			p.must(os.Symlink(t.TempDir(), p.path("d-link")))
			p.create("one")
			d, stop, stopped := filepath.Join(p.dir, "d"), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
						disturb(d)
					}
				}
			}()
			changed := 0
			for begun := time.Now(); time.Since(begun) < 500*time.Millisecond; {
				_ = os.WriteFile(d+"/f", []byte("changed"), 0o600) // or there is no such place now
				_ = os.WriteFile(d+"/e/f", []byte("changed"), 0o600)
				_ = os.WriteFile(d+"/e/surplus", []byte("new"), 0o600)
				_, err := p.store.Restore(t.Context(), p.tree, "one")
				switch {
				case errors.Is(err, ErrChanged):
					changed++
				case err != nil:
					t.Error(err)
				}
			}
			close(stop)
			<-stopped
			t.Logf("%d restores were told of it", changed)
			p.restore("one")
		})
	}
}

// A command may remove a closed file, or a folder above it, as it is opened.
func TestAClosedFileIsGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("d/f", "x")
	for _, name := range []string{"gone", "d/gone", "gone/f", "d/f/f"} {
		if _, _, err := p.tree.openClosed(name); !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
