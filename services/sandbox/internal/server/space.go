package server

import (
	"context"
	"os"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

// space is a workspace with the mounts of the acting user.
type space struct {
	*files.Space
	mounts       map[string]box.Mount // by alias
	checkCurrent func() error         // see box.Workspace.CheckCurrent
}

// folderBytes is the size of a new folder on most disks.
const folderBytes = 4096

// openSpace opens a workspace as the acting user's commands see it.
func openSpace(ctx context.Context, w *box.Workspace) (*space, error) {
	p, _ := principal.From(ctx)
	return openSpaceFor(p.User, w)
}

// openSpaceFor opens a workspace as a user's commands see it.
func openSpaceFor(user string, w *box.Workspace) (*space, error) {
	all, err := w.Mounts(user)
	if err != nil {
		return nil, err
	}
	t, err := openTree(w)
	if err != nil {
		return nil, err
	}
	t.Folder = func() error {
		if err := w.Reserve(folderBytes, 1); err != nil {
			return err
		}
		w.Changed(folderBytes, 1)
		return nil
	}
	s := &space{mounts: map[string]box.Mount{}, checkCurrent: w.CheckCurrent}
	var mounted []files.Mounted
	for _, m := range all {
		if m.Alias == "" {
			continue
		}
		s.mounts[m.Alias] = m
		mounted = append(mounted, files.Mounted{
			Alias: m.Alias, Writable: m.Writable, Cover: m.Cover, Open: func() (*os.File, error) { return openMount(w, m) },
			As: func(f func() error) error { return bind.As(bind.IDs{UID: w.Owner.UID, GID: w.Owner.GID}, f) },
		})
	}
	if s.Space, err = t.With(mounted); err != nil {
		return nil, err
	}
	return s, nil
}

// openMount opens a mount as commands see it. If they run as another user, it uses a bind mount with only
// their rights.
func openMount(w *box.Workspace, m box.Mount) (*os.File, error) {
	dir, err := m.Open(w.Dir)
	if err != nil || w.Owner == box.Self {
		return dir, err
	}
	defer func() { _ = dir.Close() }()
	return bind.Clone(dir, m.Options(w.Owner))
}

// account is what a change counts against: the workspace, or the mount that it is in.
type account struct {
	w     *box.Workspace
	mount *box.Mount // nil if none
}

func (s *space) account(w *box.Workspace, name string) account {
	if m, ok := s.mounts[s.Alias(name)]; ok {
		return account{w, &m}
	}
	return account{w, nil}
}

func (r account) reserve(bytes, inodes int64) error {
	if r.mount != nil {
		return r.w.ReserveMount(*r.mount, bytes, inodes)
	}
	return r.w.Reserve(bytes, inodes)
}

func (r account) changed(bytes, inodes int64) {
	if r.mount != nil {
		r.w.RecountMount(*r.mount)
		return
	}
	r.w.Changed(bytes, inodes)
}

func (r account) recount() {
	if r.mount != nil {
		r.w.RecountMount(*r.mount)
		return
	}
	r.w.Recount()
}
