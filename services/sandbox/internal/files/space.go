package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Mounted is a folder of the host that commands see below the workspace or beside it.
type Mounted struct {
	// Alias is its clean path below the workspace, or an absolute one beside it. A mount inside another one
	// comes after it.
	Alias    string
	Writable bool
	Cover    bool // it needs no folder of the workspace
	// Open opens the folder, as commands see it.
	Open func() (*os.File, error)
	// As calls a function with the rights of commands.
	As func(func() error) error

	tree   *Tree // opened at its first use
	within *Tree // the workspace
}

// Space is a workspace with its mounts. The kernel resolves a path below an alias in the mount, with only
// the rights of commands. A link in the workspace that leads into a mount leads nowhere here. Nothing moves
// or replaces the places of mounts, whatever links lead there. The caller must close a Space. Unlike a
// Tree, it is not safe for concurrent use.
type Space struct {
	*Tree
	mounts []*Mounted
}

// identity identifies a file.
type identity struct{ device, inode uint64 }

func identify(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), st.Ino} //nolint:unconvert // the type is the architecture's
}

// With returns the workspace with mounts, and owns the tree. It leaves out a mount whose folder in the
// workspace is missing.
func (t *Tree) With(mounts []Mounted) (*Space, error) {
	s := &Space{Tree: t}
	for _, m := range mounts {
		if s.Alias(m.Alias) != "" { // it lies in another one
			m.within = t
			s.mounts = slices.Insert(s.mounts, 0, &m) // so that it is found first
			continue
		}
		if path.IsAbs(m.Alias) { // it needs no folder of the workspace
			m.within = t
			s.mounts = append(s.mounts, &m)
			continue
		}
		there, err := t.protect(m.Alias)
		if err != nil { // the folder below may not be seen or changed
			return nil, errors.Join(fmt.Errorf("find the place of mount %s: %w", m.Alias, err), t.Close())
		}
		if there || m.Cover {
			m.within = t
			s.mounts = append(s.mounts, &m)
		}
	}
	return s, nil
}

// Close closes the workspace and the mounts.
func (s *Space) Close() error {
	err := s.Tree.Close()
	for _, m := range s.mounts {
		if m.tree != nil {
			err = errors.Join(err, m.tree.Close())
		}
	}
	return err
}

// find cleans a path. It returns the mount that the path is in, or nil, and the path within the mount.
func (s *Space) find(name string) (full string, m *Mounted, rest string, err error) {
	if full, err = clean(name); err != nil {
		return "", nil, "", err
	}
	for _, m := range s.mounts {
		if full == m.Alias {
			return full, m, ".", nil
		}
		if rest, ok := strings.CutPrefix(full, m.Alias+"/"); ok {
			return full, m, rest, nil
		}
	}
	if path.IsAbs(full) {
		return "", nil, "", fmt.Errorf("%w: %s", ErrEscapes, name)
	}
	return full, nil, full, nil
}

// Alias returns the alias of the mount that a path is in; empty if none.
func (s *Space) Alias(name string) string {
	if _, m, _, err := s.find(name); err == nil && m != nil {
		return m.Alias
	}
	return ""
}

// in calls f with the mount's files and the rights of a command.
func (m *Mounted) in(f func(*Tree) error) error {
	if m.tree == nil {
		root, err := m.Open()
		if err != nil {
			return fmt.Errorf("open mount %s: %w", m.Alias, err)
		}
		m.tree = &Tree{resolver: resolver{root: root, foreign: true, alias: m.Alias}, owner: Owner{UID: -1, GID: -1}, within: m.within}
	}
	m.tree.Rules = m.within.Rules
	if err := m.As(func() error { return f(m.tree) }); err != nil {
		return fmt.Errorf("in mount %s: %w", m.Alias, err)
	}
	return nil
}

// change is in, for a change.
func (m *Mounted) change(f func(*Tree) error) error {
	if !m.Writable {
		return fmt.Errorf("%w: %s", ErrReadOnly, m.Alias)
	}
	return m.in(f)
}

// Stat is Tree.Stat.
func (s *Space) Stat(name string) (i Info, err error) {
	full, m, rest, err := s.find(name)
	if err != nil {
		return i, err
	}
	if m == nil {
		return s.Tree.Stat(name)
	}
	err = m.in(func(t *Tree) (err error) { i, err = t.Stat(rest); return })
	i.Path = full
	return i, err
}

// List is Tree.List.
func (s *Space) List(ctx context.Context, name, after string, limit int, ignore []string) (all []Info, more bool, err error) {
	_, m, rest, err := s.find(name)
	if err != nil {
		return nil, false, err
	}
	if m == nil {
		return s.Tree.List(ctx, name, after, limit, ignore)
	}
	err = m.in(func(t *Tree) (err error) { all, more, err = t.List(ctx, rest, after, limit, ignore); return })
	for i := range all {
		all[i].Path = path.Join(m.Alias, all[i].Path)
	}
	return all, more, err
}

// Read is Tree.Read.
func (s *Space) Read(name string) (r *Reader, err error) {
	full, m, rest, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return s.Tree.Read(name)
	}
	if err := m.in(func(t *Tree) (err error) { r, err = t.Read(rest); return }); err != nil {
		return nil, err
	}
	r.Info.Path = full
	return r, nil
}

// below returns the mounts whose alias is below a folder.
func (s *Space) below(name string) (all []*Mounted) {
	for _, m := range s.mounts {
		if name == "." && !path.IsAbs(m.Alias) || strings.HasPrefix(m.Alias, name+"/") {
			all = append(all, m)
		}
	}
	return all
}

// isMountPoint reports whether a path is the place of a mount.
func (s *Space) isMountPoint(name string) bool {
	for _, m := range s.mounts {
		if m.Alias == name {
			return true
		}
	}
	return false
}

// Glob is Tree.Glob, in mounts as well.
func (s *Space) Glob(ctx context.Context, pattern, name string, limit int) ([]Info, bool, error) {
	full, m, rest, err := s.find(name)
	if err != nil {
		return nil, false, err
	}
	wanted, err := relativePattern(pattern, full)
	if err != nil {
		return nil, false, err
	}
	g := &glob{ctx: ctx, pattern: wanted, root: full, limit: limit, rules: s.Rules}
	if err := s.search(m, full, rest, g.walk); err != nil {
		return nil, false, err
	}
	return g.result()
}

// top calls f with the mount's files, or with the workspace's if m is nil.
func (s *Space) top(m *Mounted, f func(*Tree) error) error {
	if m != nil {
		return m.in(f)
	}
	return f(s.Tree)
}

// search walks the mount that a path is in, or the workspace, and then the mounts below the path.
func (s *Space) search(m *Mounted, full, rest string, walk func(*os.File, string, func(string) bool) error) error {
	one := func(t *Tree, from, name string, mounts func(string) bool) error {
		dir, err := t.directory(from)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
		return walk(dir, name, mounts)
	}
	top := func(t *Tree) error { return one(t, rest, full, s.isMountPoint) }
	if err := s.top(m, top); err != nil {
		return err
	}
	for _, m := range s.below(full) {
		if err := m.in(func(t *Tree) error { return one(t, ".", m.Alias, s.isMountPoint) }); err != nil && !errors.Is(err, errShut) {
			return err
		}
	}
	return nil
}

// Grep is Tree.Grep, in mounts as well; mounts come last.
func (s *Space) Grep(ctx context.Context, q GrepQuery, send func(GrepMatch) error) (bool, error) {
	full, m, rest, err := s.find(q.Path)
	if err != nil {
		return false, err
	}
	g, err := q.begin(s.Rules)
	if err != nil {
		return false, err
	}
	g.search = func(ctx context.Context) error {
		if err := s.top(m, func(t *Tree) error { return g.walk(ctx, t, rest, full, s.isMountPoint) }); err != nil {
			return err
		}
		for _, m := range s.below(full) {
			if err := m.in(func(t *Tree) error { return g.walk(ctx, t, ".", m.Alias, s.isMountPoint) }); err != nil && !errors.Is(err, errShut) {
				return err
			}
		}
		return nil
	}
	return g.run(ctx, send)
}
