package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// StandardFolders are made in every new workspace.
var StandardFolders = []string{"repos", "artifacts", "uploads"}

// Mount is a folder of the host that a sandbox shows besides its workspace.
type Mount struct {
	Name string `json:"name"`
	// Source is the folder. If empty, it is the workspace's own folder of the alias, which commands then
	// cannot change.
	Source string `json:"source,omitempty"`
	// Alias is its clean path below the workspace, or an absolute one beside it; empty if it has neither.
	Alias string `json:"alias,omitempty"`
	// Cover marks a read-only folder that each sandbox has its own copy of. It holds only the places of the
	// mounts below its alias. Source is a copy outside all sandboxes.
	Cover bool `json:"cover,omitempty"`
	// Original also shows it at its path on the host.
	Original bool `json:"original,omitempty"`
	Writable bool `json:"writable,omitempty"`
	// Disk is the owner of a writable mount's files on disk; commands see them as their own.
	Disk Owner `json:"disk,omitzero"`
	// Bytes and Inodes limit what it may hold; zero means no limit.
	Bytes  int64 `json:"bytes,omitempty"`
	Inodes int64 `json:"inodes,omitempty"`
}

// Path returns the path of the alias in a sandbox.
func (m Mount) Path() string {
	if path.IsAbs(m.Alias) {
		return m.Alias
	}
	return path.Join(WorkspacePath, m.Alias)
}

// Inner reports whether the alias lies in another mount, which comes before it in every list. The alias has
// no place of its own then.
func (m Mount) Inner() bool {
	if path.IsAbs(m.Alias) {
		return path.Dir(m.Alias) != "/"
	}
	return m.Point() != m.Alias
}

// Point returns the folder of the workspace that must exist for the alias, or an empty string. An alias of
// several parts lies in another mount, which comes before it in every list.
func (m Mount) Point() string {
	if path.IsAbs(m.Alias) {
		return ""
	}
	first, _, _ := strings.Cut(m.Alias, "/")
	return first
}

// Places returns the places of the listed mounts that lie below a cover, relative to its alias.
func (m Mount) Places(all []Mount) (places []string) {
	for _, other := range all {
		if rest, below := strings.CutPrefix(other.Alias, m.Alias+"/"); below {
			places = append(places, rest)
		}
	}
	return places
}

// In returns the path on the host of the mount's source, for a workspace.
func (m Mount) In(workspace string) string {
	if m.Source == "" {
		return filepath.Join(workspace, m.Alias)
	}
	return m.Source
}

// Open opens the folder that the mount shows in a workspace, following no link.
func (m Mount) Open(workspace string) (*os.File, error) {
	if m.Source != "" {
		return bind.Folder(m.Source)
	}
	w, err := bind.Own(workspace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	return within(w, m.Alias)
}

// within opens a folder in a workspace, whatever the mode of the workspace folder.
func within(workspace *os.File, name string) (f *os.File, err error) {
	err = rights.Through(workspace, func() (err error) {
		f, err = bind.Beneath(workspace, name)
		return err
	})
	return f, err
}

// Options returns how the mount is shown to commands of an owner.
func (m Mount) Options(o Owner) bind.Options {
	if !m.Writable || o == Self {
		return bind.Options{Writable: m.Writable}
	}
	return bind.Options{Writable: true, Disk: &bind.IDs{UID: m.Disk.UID, GID: m.Disk.GID}, Seen: &bind.IDs{UID: o.UID, GID: o.GID}}
}

// Mounts decides which mounts a user's commands get.
type Mounts interface {
	// For returns the mounts of a user's commands: the common ones, the user's, and those asked for. It
	// returns ErrNoMount if one does not exist or is not for this user, and leaves it out if it is optional.
	// It returns ErrMountRefused for more than the operator gives, and for the place of another mount. An
	// empty user gets the common ones.
	For(tenant, user string, asked []Ask) ([]Mount, error)
	// Environment returns the operator's variables for the environment of a user's commands, as KEY=value.
	Environment(tenant, user string) ([]string, error)
	// Private reports whether some users of a tenant have mounts whose existence is hidden from others.
	// Then each user's commands have a sandbox of their own.
	Private(tenant string) bool
}

// EncodeMounts encodes mounts as the field Mounts of a Sandbox.
func EncodeMounts(all []Mount) string {
	if len(all) == 0 {
		return ""
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(raw)
}

// MountList returns the sandbox's mounts.
func (s Sandbox) MountList() ([]Mount, error) {
	if s.Mounts == "" {
		return nil, nil
	}
	var all []Mount
	if err := json.Unmarshal([]byte(s.Mounts), &all); err != nil {
		return nil, fmt.Errorf("read the sandbox's mounts: %w", err)
	}
	return all, nil
}

// mounts returns the session's mounts for a user, each with its place. mu is held.
func (ws *workspace) mounts(user string) ([]Mount, error) {
	return ws.mountsFor(user, ws.meta.Asked, true)
}

// Points returns the folders of the workspace that mounts lie over; the value is true for covers, which
// have nothing below them. All users of the session have the same points, because their commands may run at
// the same time.
func (w *Workspace) Points(user string) (map[string]bool, error) {
	all, err := w.Mounts(user)
	if err != nil {
		return nil, err
	}
	points := map[string]bool{}
	for _, m := range all {
		if m.Point() != "" {
			points[m.Point()] = points[m.Point()] || m.Cover
		}
	}
	return points, nil
}

// mountsFor is mounts with the requests. If prepare is set, it makes the folders that mounts lie
// over. Otherwise it leaves out mounts whose folder is missing, except covers, which need none.
func (ws *workspace) mountsFor(user string, asked []Ask, prepare bool) ([]Mount, error) {
	var all []Mount
	if ws.node.o.Mounts != nil {
		var err error
		if all, err = ws.node.o.Mounts.For(ws.key.Tenant, user, asked); err != nil {
			return nil, err
		}
	}
	beside, err := ws.trees()
	if err != nil {
		return nil, err
	}
	all = append(all, beside...)
	return placed(ws.path("workspace"), ws.node.slots.owner(ws.meta.Slot), all, prepare)
}

// placed returns the mounts that have a place in a workspace, and makes the places if prepare is set.
// Without prepare it always keeps covers and the mounts in them, so that nothing below can be seen or
// changed.
func placed(workspace string, o Owner, all []Mount, prepare bool) ([]Mount, error) {
	dir, err := openOwn(workspace)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	defer func() { _ = dir.Close() }()
	kept := make([]Mount, 0, len(all))
	for _, m := range all {
		err := place(dir, o, m, prepare)
		switch {
		case err == nil, !prepare && (m.Cover || m.Inner()):
			kept = append(kept, m)
		case !errors.Is(err, ErrMountPoint): // the folder below may hold files that must not be seen or changed
			return nil, err
		case prepare && m.Source != "": // without a source there is nothing to hide or protect
			return nil, err
		}
	}
	return kept, nil
}

// openOwn opens a workspace without the right to read it, and repairs its mode and that of the home
// directory beside it: every command starts in the first and reads its settings in the second. It reaches
// neither through the other, which a command may close at any moment.
func openOwn(workspace string) (*os.File, error) {
	dir, err := bind.Own(workspace)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(filepath.Dir(workspace), "home")
	if err := errors.Join(rights.Keep(int(dir.Fd()), ""), rights.Keep(unix.AT_FDCWD, home)); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// place makes the folder that a mount lies over. It must be a real folder: a link would move the mount.
func place(dir *os.File, o Owner, m Mount, prepare bool) error {
	point := m.Point()
	if point == "" {
		return nil
	}
	f, err := within(dir, point)
	if errors.Is(err, unix.ENOENT) && prepare {
		f, err = makePoint(dir, point, o)
	}
	if errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: mount %s cannot be shown at %s, because the workspace's folder is closed: open it with `chmod u+rwx`: %w", ErrMountPoint, m.Name, point, err)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("%w: mount %s cannot be shown at %s, where the workspace has something other than a folder: move it away: %w", ErrMountPoint, m.Name, point, err)
	}
	if err != nil {
		return fmt.Errorf("find the place of mount %s: %w", m.Name, err)
	}
	return f.Close()
}

func makePoint(dir *os.File, point string, o Owner) (*os.File, error) {
	err := rights.Through(dir, func() error { return unix.Mkdirat(int(dir.Fd()), point, 0o755) })
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	made := err == nil
	f, err := within(dir, point)
	if err != nil || !made {
		return f, err
	}
	err = os.Chmod(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 0o755) //nolint:gosec // regardless of the service's umask
	if err == nil && o != Self {
		err = unix.Fchownat(int(f.Fd()), "", o.UID, o.GID, unix.AT_EMPTY_PATH)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("give the folder %s to user %d: %w", point, o.UID, err), f.Close())
	}
	return f, nil
}

// MakeStandardFolders makes the standard folders that are missing. An existing entry of that name stays,
// whatever its type; a link is not followed. If the disk is full, the folders are left out: the next writer
// of a file in them makes them.
func (w *Workspace) MakeStandardFolders() error {
	dir, err := openOwn(w.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for _, name := range StandardFolders {
		f, err := makePoint(dir, name, w.Owner)
		switch {
		case err == nil:
			_ = f.Close()
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOENT): // the workspace has its own, or a command removed it
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		default:
			return fmt.Errorf("make the folder %s: %w", name, err)
		}
	}
	w.Recount()
	return nil
}

// Mounts returns the user's mounts in the workspace.
func (w *Workspace) Mounts(user string) ([]Mount, error) {
	w.s.workspace.mu.Lock()
	defer w.s.workspace.mu.Unlock()
	if w.s.workspace.meta == nil {
		return nil, ErrNoWorkspace
	}
	ws := w.s.workspace
	all, err := ws.mountsFor(user, ws.meta.Asked, false)
	if err == nil || !refused(err) {
		return all, err
	}
	var may []Ask // mounts requested for another user are left out
	for _, ask := range ws.meta.Asked {
		if _, err := ws.mountsFor(user, append(slices.Clone(may), ask), false); err == nil {
			may = append(may, ask)
		} else if !refused(err) {
			return nil, err
		}
	}
	return ws.mountsFor(user, may, false)
}

// refused reports whether a user may not have a mount as requested.
func refused(err error) bool { return errors.Is(err, ErrNoMount) || errors.Is(err, ErrMountRefused) }

// ReserveMount refuses a change that would exceed a mount's limits, and a file above the limit of a file.
func (w *Workspace) ReserveMount(m Mount, bytes, inodes int64) error {
	if limit := w.s.node.o.Limits.FileBytes; bytes > limit {
		return fmt.Errorf("%w: a file may have at most %d bytes", ErrStorageFull, limit)
	}
	if m.Bytes == 0 {
		return nil
	}
	why, err := w.s.node.storages.of(m).Reserve(m.limits().room(), bytes, inodes, m.Source)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: with this change %s", ErrStorageFull, why)
	}
	return nil
}

// RecountMount makes a mount be counted again before the next change.
func (w *Workspace) RecountMount(m Mount) { w.s.node.storages.of(m).Forget() }

// limits returns a mount's limits, in the form in which folders are counted.
func (m Mount) limits() Limits { return Limits{WorkspaceBytes: m.Bytes, WorkspaceInodes: m.Inodes} }

// storages are what limited mounts hold, for all sessions of a node. It is safe for concurrent use.
type storages struct {
	mu       sync.Mutex // guards bySource
	bySource map[string]*disk.Tally
}

func newStorages() *storages { return &storages{bySource: map[string]*disk.Tally{}} }

// of returns the tally of a mount.
func (all *storages) of(m Mount) *disk.Tally {
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.bySource[m.Source]
	if t == nil {
		t = &disk.Tally{}
		all.bySource[m.Source] = t
	}
	return t
}
