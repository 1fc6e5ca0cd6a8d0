package files

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// Put is Tree.Put.
func (s *Space) Put(d *Draft, name string, to Target) (i Info, created bool, err error) {
	full, m, rest, err := s.find(name)
	if err != nil {
		return i, false, err
	}
	if m == nil {
		return s.Tree.Put(d, name, to)
	}
	if before := to.Before; before != nil {
		to.Before = func(p RenameStep, i Info, replaces int64) error {
			i.Path = full
			return outside(func() error { return before(p.below(m.Alias), i, replaces) })
		}
	}
	err = m.change(func(t *Tree) error {
		moved := &Draft{tree: t, file: d.file, size: d.size}
		i, created, err = t.Put(moved, rest, to)
		return err
	})
	i.Path = full
	return i, created, err
}

// outside calls f with the service's own rights, which the caller's thread lacks.
func outside(f func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- f() }()
	return <-answer
}

// Edit is Tree.Edit.
func (s *Space) Edit(name string, edits []Edit) (e Edited, err error) {
	_, m, rest, err := s.find(name)
	if err != nil {
		return e, err
	}
	if m == nil {
		return s.Tree.Edit(name, edits)
	}
	err = m.change(func(t *Tree) (err error) { e, err = t.Edit(rest, edits); return })
	return e, err
}

// Remove is Tree.Remove.
func (s *Space) Remove(name string, recursive bool, before func(RenameStep) error) error {
	full, m, rest, err := s.find(name)
	switch {
	case err != nil:
		return err
	case m == nil:
		return s.Tree.Remove(name, recursive, before)
	case rest == ".":
		return fmt.Errorf("%w: %s", ErrMountPoint, full)
	}
	return m.change(func(t *Tree) error { return t.Remove(rest, recursive, m.before(before)) })
}

// before wraps f for a mount: f gets the step as seen from the workspace, and runs with the service's own
// rights.
func (m *Mounted) before(f func(RenameStep) error) func(RenameStep) error {
	if f == nil {
		return nil
	}
	return func(p RenameStep) error { return outside(func() error { return f(p.below(m.Alias)) }) }
}

// Move is Tree.Move. It cannot move files between a mount and the outside.
func (s *Space) Move(from, to string, overwrite bool, before func(RenameStep) error) (i Info, err error) {
	source, m, oldRest, err := s.find(from)
	if err != nil {
		return i, err
	}
	target, other, newRest, err := s.find(to)
	switch {
	case err != nil:
		return i, err
	case m != nil && oldRest == ".":
		return i, fmt.Errorf("%w: %s", ErrMountPoint, source)
	case other != nil && newRest == ".":
		return i, fmt.Errorf("%w: %s", ErrMountPoint, target)
	case m != other:
		return i, fmt.Errorf("%w: %s and %s are on different sides of a mount: write the new file, then delete the old one", ErrWrongType, source, target)
	case m == nil:
		return s.Tree.Move(from, to, overwrite, before)
	}
	err = m.change(func(t *Tree) (err error) {
		i, err = t.Move(oldRest, newRest, overwrite, m.before(before))
		return err
	})
	i.Path = target
	return i, err
}

// Mark is Tree.Mark.
func (s *Space) Mark(name string, follow bool) (found Mark, err error) {
	_, m, rest, err := s.find(name)
	if err != nil {
		return found, err
	}
	if m == nil {
		return s.Tree.Mark(name, follow)
	}
	err = m.in(func(t *Tree) (err error) { found, err = t.Mark(rest, follow); return })
	return found, err
}

// Watch is Tree.Watch. It does not report changes in mounts below the path; these need their own Watch.
func (s *Space) Watch(ctx context.Context, name string, report func([]Changed) error) error {
	_, m, rest, err := s.find(name)
	if err != nil {
		return err
	}
	if m == nil {
		return s.Tree.Watch(ctx, name, report)
	}
	return m.in(func(t *Tree) error {
		return t.Watch(ctx, rest, func(all []Changed) error {
			for i := range all {
				if all[i].Path != "" {
					all[i].Path = path.Join(m.Alias, all[i].Path)
				}
			}
			return report(all)
		})
	})
}

// copyInto is rename for a place on another mount: it first writes the file beside its place.
func (d *Draft) copyInto(p placing, to Target) (Info, error) {
	draft := ".fairlead-" + rand.Text()
	fd, err := unix.Openat(int(p.dir.Fd()), draft, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return Info{}, refine(p.name, err)
	}
	f := os.NewFile(uintptr(fd), draft)
	defer func() { _ = f.Close() }()
	var info Info
	if _, err = io.Copy(f, io.NewSectionReader(d.file, 0, d.size)); err == nil {
		f, err = finish(f)
	}
	if err != nil {
		err = refine(p.name, err) // the mount may be on another disk, which is full
	} else {
		p.file, p.from = f, int(p.dir.Fd())
		p.step.From, p.step.Staged = path.Join(path.Dir(p.name), draft), false
		info, err = p.rename(to)
	}
	if err != nil {
		_ = unix.Unlinkat(int(p.dir.Fd()), draft, 0)
	}
	return info, err
}

// removeInPlace removes a directory with its contents, following no link.
func removeInPlace(fd int, last, name string) error {
	if err := erase.All(fmt.Sprintf("/proc/self/fd/%d/%s", fd, last)); err != nil {
		return refine(name, err)
	}
	return nil
}
