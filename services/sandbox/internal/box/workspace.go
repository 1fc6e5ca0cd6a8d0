package box

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// workspace is the state of a session's workspace: its configuration, its size, and who may use it.
type workspace struct {
	location

	execs  *execs     // of its session
	usage  disk.Tally // its size
	kept   mutex      // write-locked while snapshots are removed
	starts mutex      // write-locked while nothing may start

	mu    mutex // guards what follows
	meta  *meta // nil when there is no workspace
	edits edits
}

// Workspace gives access to a session's files from outside its sandbox.
type Workspace struct {
	Dir     string // on the host
	Staging string // a folder on the same file system, for files not yet in place
	// Snapshots is the folder of its snapshots. ReadSnapshots and RemoveSnapshots guard it. Any other
	// change of it is a Change, so that changes happen one after the other.
	Snapshots  string
	Generation int64 // of its place
	Owner      Owner
	created    time.Time
	limits     Limits
	slot       int
	s          *session
	refer      func(intent []byte) error // only of a Change
}

// Ensured is the result of Ensure.
type Ensured struct {
	Created    bool
	Generation int64
}

// Want is how a workspace is to be configured. Nil fields leave their settings unchanged.
type Want struct {
	// Network is the policy of what its commands may reach; if empty, nothing. The node must have a
	// Network.
	Network *string
	// Limits lowers the operator's limits.
	Limits *Lower
	// Mounts are its requests for mounts.
	Mounts *[]Ask
	// Trees are its read-only trees, sorted by name. A tree that the node lacks is ErrNoTree.
	Trees *[]Tree
	// Environment is the acting user's variables for the environment of commands.
	Environment *Environment
	// Existing refuses with ErrNoWorkspace if no workspace of the generation exists, instead of making one.
	Existing bool
}

// Ensure makes or finds a session's workspace, and records the epoch and the configuration. seed puts the
// first files into a new one; if seed fails, no workspace is made. Running commands keep their sandbox.
// Later commands get a new one if the configuration changed.
func (n *Node) Ensure(c Call, w Want, seed func(*Workspace) error) (Ensured, error) {
	if w.Limits != nil {
		if err := n.o.Limits.check(*w.Limits); err != nil {
			return Ensured{}, err
		}
	}
	if w.Trees != nil {
		if _, err := n.treeMounts(*w.Trees); err != nil {
			return Ensured{}, err
		}
	}
	return n.ensure(c, w, seed, "")
}

// Import makes a session's workspace with the files that fill puts into it, atomically. It returns
// ErrWorkspaceExists if there is one, unless the same call made it.
func (n *Node) Import(c Call, fill func(*Workspace) error) (Ensured, error) {
	return n.ensure(c, Want{}, fill, c.ID)
}

// ensure is Ensure, or Import if importID is set.
func (n *Node) ensure(c Call, want Want, seed func(*Workspace) error, importID string) (Ensured, error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return Ensured{}, err
	}
	defer leave()
	if !want.Existing {
		if err := s.replace(c); err != nil {
			return Ensured{}, err
		}
	}
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	s.workspace.edits.count++ // places of mounts may be made
	if want.Existing && (s.workspace.meta == nil || s.workspace.meta.Generation < c.Generation) {
		return Ensured{}, cmp.Or(n.meant(c), ErrNoWorkspace)
	}
	if s.workspace.meta != nil {
		if err := s.workspace.admitCall(c); err != nil {
			return Ensured{}, err
		}
		if err := s.workspace.fence(c); err != nil {
			return Ensured{}, err
		}
		if importID != "" && importID != s.workspace.meta.Import {
			return Ensured{}, ErrWorkspaceExists
		}
		if err := s.workspace.meta.unsealed(); err != nil && importID == "" {
			return Ensured{}, err
		}
		if err := s.workspace.become(want); err != nil {
			return Ensured{}, err
		}
		if _, err := s.workspace.mounts(c.User); err != nil {
			return Ensured{}, err
		}
		return Ensured{Generation: s.workspace.meta.Generation}, nil
	}
	m := &meta{Generation: max(c.Generation, 1), Created: n.o.Now().UTC(), Import: importID}
	if m.Epoch = c.Epoch; c.Holder != "" {
		m.Epoch, m.Holders = 0, map[string]int64{c.Holder: c.Epoch}
	}
	m.want(want)
	if err := s.create(m, c.User, seed); err != nil {
		return Ensured{}, err
	}
	return Ensured{Created: true, Generation: s.workspace.meta.Generation}, nil
}

// want records how the workspace is to be configured and reports whether that changed it.
func (m *meta) want(w Want) (changed bool) {
	if w.Network != nil && *w.Network != m.Network {
		m.Network, changed = *w.Network, true
	}
	if w.Limits != nil {
		old := Lower{}
		if m.Limits != nil {
			old = *m.Limits
		}
		if old != *w.Limits {
			limits := *w.Limits
			m.Limits, changed = &limits, true
		}
	}
	if w.Mounts != nil && !slices.Equal(*w.Mounts, m.Asked) {
		m.Asked, changed = *w.Mounts, true
	}
	if w.Trees != nil && !slices.Equal(*w.Trees, m.Trees) {
		m.Trees, changed = *w.Trees, true
	}
	if w.Environment != nil {
		e := *w.Environment
		e.Secret = len(e.Variables) > 0
		if !e.equal(m.Environment) {
			m.Environment, changed = e, true
		}
	}
	return changed
}

// become records the workspace's new configuration. mu is held.
func (ws *workspace) become(w Want) error {
	m := *ws.meta
	if !m.want(w) {
		return nil
	}
	if live := ws.execs.live(); len(live) > 0 && (!slices.Equal(m.Asked, ws.meta.Asked) || !slices.Equal(m.Trees, ws.meta.Trees)) { // the places of their mounts are in use
		return fmt.Errorf("%w: command %s: wait for its end, or end it", ErrMountsInUse, live[0].ID())
	}
	if err := ws.keepSize(&m); err != nil {
		return err
	}
	if err := save(ws.path(metaFile), m); err != nil {
		return fmt.Errorf("record the workspace's specification: %w", err)
	}
	ws.meta = &m
	ws.usage.Forget() // it was counted up to the old limits
	return nil
}

// create makes the folders. The meta file comes last: without it, a workspace does not exist. It stores m
// after it has set the slot. The workspace's lock is held.
func (s *session) create(m *meta, user string, seed func(*Workspace) error) (err error) {
	if err := s.node.checkDiskSpace(); err != nil {
		return err
	}
	if err := s.node.dir.discard(s.dir); err != nil {
		return fmt.Errorf("clear the leftovers of an interrupted start: %w", err)
	}
	var sp *spare
	if m.Import == "" { // imported files may lie in the places of mounts
		sp = s.node.spares.claim()
	}
	var slot int
	if sp != nil {
		slot = sp.slot
	} else if slot, err = s.node.slots.acquire(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if sp != nil {
				s.node.o.Runner.Stop(sp.sandbox.Workspace)
				_ = erase.All(sp.dir())
			}
			s.node.o.Runner.Stop(s.path("workspace"))
			s.workspace.meta = nil
			s.workspace.usage.Forget()
			_ = s.node.dir.discard(s.dir)
			s.node.slots.free(slot)
		}
	}()
	m.Slot = slot
	if err := s.workspace.makeFolders(slot, sp); err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	if err := s.workspace.keepSize(m, s.path("workspace"), s.path("home"), s.path("staging")); err != nil {
		return err
	}
	s.workspace.meta = m
	var mounts []Mount
	if m.Import == "" {
		if mounts, err = s.workspace.mounts(user); err != nil {
			return err
		}
	}
	if sp != nil {
		s.node.o.Runner.Move(sp.sandbox.Workspace, s.workspace.sandbox(EncodeMounts(mounts), user))
	}
	if err := seed(s.view()); err != nil {
		return err
	}
	if err := s.workspace.setAside(user); err != nil {
		return err
	}
	if _, err := s.workspace.mounts(user); err != nil {
		return err
	}
	return s.workspace.exists(m)
}

// exists records on disk that the workspace exists.
func (ws *workspace) exists(m *meta) error {
	if m.Import != "" { // it counts from now on, and the next export removes its source
		if err := ws.node.dir.sync(); err != nil {
			return fmt.Errorf("sync the imported files: %w", err)
		}
	}
	ws.node.at(Call{Key: ws.key, ID: m.Import}, "import", "intended")
	if err := save(ws.path(metaFile), m); err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	ws.node.at(Call{Key: ws.key, ID: m.Import}, "import", "made")
	return durable.SyncDir(filepath.Dir(ws.dir))
}

func (ws *workspace) makeFolders(slot int, sp *spare) error {
	if sp != nil {
		if err := ws.adopt(sp); err != nil {
			return err
		}
	}
	for _, dir := range []string{"execs", "mutations", "staging"} {
		if err := os.MkdirAll(ws.path(dir), 0o700); err != nil {
			return err
		}
	}
	for _, dir := range []string{"workspace", "home"} {
		if sp != nil {
			break
		}
		if err := makeOwned(ws.path(dir), ws.node.slots.owner(slot)); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) view() *Workspace {
	return &Workspace{Dir: s.path("workspace"), Staging: s.path("staging"), Snapshots: s.path("snapshots"), Generation: s.workspace.meta.Generation, Owner: s.node.slots.owner(s.workspace.meta.Slot), created: s.workspace.meta.Created, limits: s.workspace.limits(), slot: s.workspace.meta.Slot, s: s}
}

// View returns a session's workspace for reading. The caller must call release.
func (n *Node) View(k Key, generation int64) (w *Workspace, release func(), err error) {
	s, leave, err := n.sessions.enter(k)
	if err != nil {
		return nil, nil, err
	}
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err := s.workspace.admit(generation); err != nil {
		leave()
		return nil, nil, err
	}
	return s.view(), leave, nil
}

// CheckCurrent returns ErrStaleGeneration if the workspace is no longer the one that View returned: data read
// meanwhile may be incomplete.
func (w *Workspace) CheckCurrent() error {
	w.s.workspace.mu.Lock()
	defer w.s.workspace.mu.Unlock()
	if m := w.s.workspace.meta; m == nil || m.Generation != w.Generation || !m.Created.Equal(w.created) {
		return fmt.Errorf("%w: the workspace was deleted, or moved to another machine, while it was read", ErrStaleGeneration)
	}
	return nil
}
