package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/stage"
)

// etcPath is where sandboxes see it.
const etcPath = "/etc"

// In what is put together: /etc, and an empty folder that hides others. It is no file system
// of its own in each sandbox, for every one takes some kilobytes.
const (
	etcPart   = "/etc"
	emptyPart = "/empty"
)

// etc is the /etc of all sandboxes, put together on the stage once, read-only: to have
// bubblewrap put it together each time is what took most of the mounts of a sandbox.
type etc struct {
	stage *stage.Stage
	binds []rootfs.Bind

	mu      sync.Mutex // guards what follows
	at      string     // empty: there is none
	older   string     // the one before, which a sandbox that is being made may want yet
	watched []watched  // what it shows, as it was then
}

// newETC takes the part of a layout below /etc.
func newETC(g *stage.Stage, l *rootfs.Layout) *etc {
	e := &etc{stage: g}
	for _, b := range append(append([]rootfs.Bind{}, l.Binds...), l.Extra...) {
		if below(b.Path) {
			e.binds = append(e.binds, b)
		}
	}
	return e
}

func below(path string) bool { return strings.HasPrefix(path, etcPath+"/") }

// path is where bubblewrap finds it. It is made anew when the machine has something else
// than it shows.
func (e *etc) path() (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at != "" && !slices.ContainsFunc(e.watched, watched.changed) {
		return e.at, nil
	}
	// The stage may hide where they are: they are opened here, not on its thread.
	var parts []part
	var all []watched
	defer func() {
		for _, p := range parts {
			p.close()
		}
	}()
	for _, b := range e.binds {
		c := collection{}
		if err := c.collect(b.Source, strings.TrimPrefix(b.Path, etcPath+"/")); err != nil {
			return "", fmt.Errorf("put /etc together: %w", err)
		}
		parts, all = append(parts, c.parts...), append(all, c.watched...)
	}
	at := e.stage.Fresh("etc")
	err := e.stage.Do(func() error {
		if err := build(at, parts); err != nil {
			return errors.Join(fmt.Errorf("put /etc together: %w", err), takeDown(at))
		}
		return takeDown(e.older)
	})
	if err != nil {
		return "", err
	}
	e.older, e.at, e.watched = e.at, at, all
	return at, nil
}

// build puts it together, on the stage's thread.
func build(at string, parts []part) error {
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("etc", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=32m"); err != nil {
		return &os.PathError{Op: "mount", Path: at, Err: err}
	}
	for _, dir := range []string{etcPart, emptyPart} {
		if err := errors.Join(os.Mkdir(at+dir, 0o755), os.Chmod(at+dir, 0o755)); err != nil { //nolint:gosec // all may look into it
			return err
		}
	}
	for _, f := range rootfs.MadeFiles {
		name := at + etcPart + strings.TrimPrefix(f.Path, etcPath)
		if err := errors.Join(os.WriteFile(name, []byte(f.Text), 0o444), os.Chmod(name, 0o444)); err != nil { //nolint:gosec // all may read it
			return err
		}
	}
	if err := showAll(at+etcPart, parts); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	return os.NewSyscallError("mount_setattr", unix.MountSetattr(unix.AT_FDCWD, at, 0, &attr))
}

func showAll(dir string, parts []part) error {
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.show(folder); err != nil {
			return errors.Join(&os.PathError{Op: "show", Path: filepath.Join(etcPath, p.path), Err: err}, folder.Close())
		}
	}
	return folder.Close()
}

// takeDown undoes build, also one that failed.
func takeDown(at string) error {
	if at == "" {
		return nil
	}
	if err := unix.Unmount(at, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "unmount", Path: at, Err: err}
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
