package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// StandardFolders are made in every new workspace.
var StandardFolders = []string{"repos", "artifacts", "uploads"}

// Mount is a folder of the host that a sandbox shows besides its workspace.
type Mount struct {
	Name string `json:"name"`
	// Source is the folder. Empty stands for the workspace's own folder of the
	// alias, which commands then cannot change.
	Source string `json:"source,omitempty"`
	// Alias is where it is shown, from the workspace on, clean; empty: nowhere there.
	Alias string `json:"alias,omitempty"`
	// Cover says that it is a folder of each sandbox's own, read-only, with the places of the
	// mounts that lie below its alias and nothing else. Source is one like it, outside of all.
	Cover bool `json:"cover,omitempty"`
	// Original says that it is also shown where it is on the host.
	Original bool `json:"original,omitempty"`
	Writable bool `json:"writable,omitempty"`
	// Disk is who owns the files of a writable one; to commands they are their own.
	Disk Owner `json:"disk,omitzero"`
	// Bytes and Inodes bound what it may hold; zero: nothing does.
	Bytes  int64 `json:"bytes,omitempty"`
	Inodes int64 `json:"inodes,omitempty"`
}

// Point is the folder of the workspace that has to be there for the alias; empty: none. What an
// alias of several parts lies in is another mount, before it in every list.
func (m Mount) Point() string {
	first, _, _ := strings.Cut(m.Alias, "/")
	return first
}

// Places are where, of mounts of a list, those lie that a cover has: from its alias on.
func (m Mount) Places(all []Mount) (places []string) {
	for _, other := range all {
		if rest, below := strings.CutPrefix(other.Alias, m.Alias+"/"); below {
			places = append(places, rest)
		}
	}
	return places
}

// In is where the mount's source is on the host, for a workspace.
func (m Mount) In(workspace string) string {
	if m.Source == "" {
		return filepath.Join(workspace, m.Alias)
	}
	return m.Source
}

// Open opens what the mount shows in a workspace, through no link.
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

// within opens a folder in a workspace, whatever a command does to the workspace's own mode.
func within(workspace *os.File, name string) (f *os.File, err error) {
	err = rights.Through(workspace, func() (err error) {
		f, err = bind.Beneath(workspace, name)
		return err
	})
	return f, err
}

// Options are how the mount is shown to commands of an owner.
func (m Mount) Options(o Owner) bind.Options {
	if !m.Writable || o == Self {
		return bind.Options{Writable: m.Writable}
	}
	return bind.Options{Writable: true, Disk: &bind.IDs{UID: m.Disk.UID, GID: m.Disk.GID}, Seen: &bind.IDs{UID: o.UID, GID: o.GID}}
}

// Mounts are what the node shows to whom.
type Mounts interface {
	// For is what commands of a user get: what everybody does, what this user does,
	// and what was asked for by name. ErrNoMount when one of those does not exist, or
	// is not for this user. No user stands for what everybody gets.
	For(tenant, user string, asked []string) ([]Mount, error)
	// Environment is what the operator puts into the environment of a user's
	// commands, as KEY=value.
	Environment(tenant, user string) ([]string, error)
	// Private says that some users of a tenant have mounts of which others are not to learn, not
	// even that there are any: each user's commands have a sandbox of their own.
	Private(tenant string) bool
}

// EncodeMounts writes mounts as a Sandbox has them.
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

// MountList are the sandbox's mounts.
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
func (s *session) mounts(user string) ([]Mount, error) {
	return s.mountsFor(user, s.meta.Asked, true)
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
		if m.Alias != "" {
			points[m.Point()] = points[m.Point()] || m.Cover
		}
	}
	return points, nil
}

// mountsFor is mounts, with what is asked for. prepare makes the folders that they
// lie over; without it mounts that have none are left out, but for covers, which need none.
func (s *session) mountsFor(user string, asked []string, prepare bool) ([]Mount, error) {
	var all []Mount
	if s.node.o.Mounts != nil {
		var err error
		if all, err = s.node.o.Mounts.For(s.key.Tenant, user, asked); err != nil {
			return nil, err
		}
	}
	return placed(s.path("workspace"), s.node.slots.owner(s.meta.Slot), all, prepare)
}

// placed returns the mounts that have their place in a workspace, and makes it. Without prepare it
// makes none, and keeps covers, and what lies in them, in any case: nothing of what may be below is
// to be seen or changed.
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
		case err == nil, !prepare && (m.Cover || m.Point() != m.Alias):
			kept = append(kept, m)
		case !errors.Is(err, ErrMountPoint): // the folder below may hold files that must not be seen or changed
			return nil, err
		case prepare && m.Source != "": // without a source there is nothing to hide or protect
			return nil, err
		}
	}
	return kept, nil
}

// openOwn opens a workspace without the right to read it, and keeps it and the home directory
// beside it: every command begins in the one and finds its settings in the other. Neither is
// reached through the other, which a command may close at any moment.
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

// place makes the folder that a mount lies over. It is a real one: a link would have the
// mount somewhere else.
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
		return fmt.Errorf("%w: mount %s cannot be shown at %s, for the workspace's folder is closed: open it with `chmod u+rwx`: %w", ErrMountPoint, m.Name, point, err)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("%w: mount %s cannot be shown at %s, where the workspace has something else than a folder: move it away: %w", ErrMountPoint, m.Name, point, err)
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
	err = os.Chmod(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 0o755) //nolint:gosec // whatever the mask is with which the service was started
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

// Mounts are those that a user has in the workspace.
func (w *Workspace) Mounts(user string) ([]Mount, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.s.meta == nil {
		return nil, ErrNoWorkspace
	}
	var may []string // mounts requested for another user are left out
	for _, name := range w.s.meta.Asked {
		if _, err := w.s.mountsFor(user, []string{name}, false); err == nil {
			may = append(may, name)
		} else if !errors.Is(err, ErrNoMount) {
			return nil, err
		}
	}
	return w.s.mountsFor(user, may, false)
}

// ReserveMount refuses a change that would make a bounded mount larger than it may
// be, and a file that is larger than any may be.
func (w *Workspace) ReserveMount(m Mount, bytes, inodes int64) error {
	if limit := w.s.node.o.Limits.FileBytes; bytes > limit {
		return fmt.Errorf("%w: a file may have at most %d bytes", ErrStorageFull, limit)
	}
	if m.Bytes == 0 {
		return nil
	}
	why, err := w.s.node.stored(m).reserve(m.limits(), bytes, inodes, m.Source)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: with this change %s", ErrStorageFull, why)
	}
	w.s.books.bring(bytes)
	return nil
}

// RecountMount has a mount counted anew before the next change.
func (w *Workspace) RecountMount(m Mount) { w.s.node.stored(m).forget() }

// limits are a mount's bounds, in the form in which folders are counted.
func (m Mount) limits() Limits { return Limits{WorkspaceBytes: m.Bytes, WorkspaceInodes: m.Inodes} }

// stored is what is known of how much a mount holds.
func (n *Node) stored(m Mount) *tally {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.storages[m.Source]
	if t == nil {
		t = &tally{}
		n.storages[m.Source] = t
	}
	return t
}

// hitStorage is the limit of a bounded mount.
const hitStorage = "storage"

// surroundings are what a command of the caller's finds: its mounts, its environment,
// and what watches the folders that it may fill. mu is held.
func (s *session) surroundings(c Call) (mounts string, env []string, w watch, err error) {
	all, err := s.mounts(c.User)
	if err != nil {
		return "", nil, nil, err
	}
	mounts = EncodeMounts(all)
	if err := s.otherMounts(mounts, s.apart(c.User)); err != nil {
		return "", nil, nil, err
	}
	if env, err = s.environment(c.User); err != nil {
		return "", nil, nil, err
	}
	w, err = s.watchMounts(all)
	return mounts, env, w, err
}

// watchMounts is watch, for the mounts that are bounded, too. One that was full
// before the command may grow by a little, so that the command can make room.
func (s *session) watchMounts(all []Mount) (watch, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(m Mount) bool { return m.Bytes == 0 })
	if len(all) == 0 {
		return s.watch, nil
	}
	bounds := make([]Limits, len(all))
	for i, m := range all {
		u, err := s.node.stored(m).near(m.limits(), m.Source)
		if err != nil {
			return nil, fmt.Errorf("count mount %s: %w", m.Name, err)
		}
		bounds[i] = m.limits()
		if u.over(bounds[i]) != "" {
			if u, err = measure(bounds[i].far(), m.Source); err != nil {
				return nil, fmt.Errorf("count mount %s: %w", m.Name, err)
			}
			bounds[i].WorkspaceBytes = max(m.Bytes, u.Bytes) + slackBytes
			bounds[i].WorkspaceInodes = max(m.Inodes, u.Inodes) + slackInodes
		}
	}
	return func(l Limits, quick bool, h nameless) (limit, why string) {
		limit, why = s.watch(l, quick, h)
		for i, m := range all {
			if w := s.watchMount(m, bounds[i], quick); w != "" && limit == "" {
				limit, why = hitStorage, w
			}
		}
		return limit, why
	}, nil
}

func (s *session) watchMount(m Mount, bound Limits, quick bool) string {
	u, err := s.node.stored(m).look(quick, bound, m.Source)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			s.node.o.Log.Error("cannot count a mount", "mount", m.Name, "error", err)
		}
		return ""
	}
	if why := u.over(bound); why != "" {
		return "mount " + m.Name + " is too large: " + why
	}
	return ""
}

// Environment is what a user has in the environment of commands.
type Environment struct {
	User      string            `json:"user,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
}

func (e Environment) equal(o Environment) bool {
	if e.User != o.User || len(e.Variables) != len(o.Variables) {
		return false
	}
	for k, v := range e.Variables {
		if w, ok := o.Variables[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// environment is what the operator and the user who acts have in the environment of
// commands; what comes later wins. mu is held.
func (s *session) environment(user string) (env []string, err error) {
	if s.node.o.Mounts != nil {
		if env, err = s.node.o.Mounts.Environment(s.key.Tenant, user); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIsolation, err)
		}
	}
	if e := s.meta.Environment; e.User == user {
		for k, v := range e.Variables {
			env = append(env, k+"="+v)
		}
	}
	return env, nil
}

// apart is the user whose own a sandbox is to be; empty: users share it, as far as their mounts
// are the same.
func (s *session) apart(user string) string {
	if s.node.o.Mounts == nil || !s.node.o.Mounts.Private(s.key.Tenant) {
		return ""
	}
	return user
}

// otherMounts refuses a command while commands with other mounts run. Such a command could change the
// places that this command's mounts are to lie over. If their mounts are unknown, it refuses beside any
// command of another user. mu is held.
func (s *session) otherMounts(mounts, user string) error {
	for _, e := range s.live() {
		if e.mounts != mounts || e.user != user {
			return fmt.Errorf("%w: command %s: wait for its end, or end it", ErrMountsInUse, e.ID())
		}
	}
	return nil
}
