package box

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// meta is the stored data of a workspace.
type meta struct {
	Generation int64 `json:"generation"`
	Epoch      int64 `json:"epoch"` // the highest one seen
	// Holders are the highest epochs seen of other sessions that work in the workspace, by session.
	Holders map[string]int64 `json:"holders,omitempty"`
	Slot    int              `json:"slot"` // of its owner
	Created time.Time        `json:"created"`
	Import  string           `json:"import,omitempty"`  // the call that made it by Import
	Sealed  bool             `json:"sealed,omitempty"`  // nothing may change it, because it is about to be moved
	Network string           `json:"network,omitempty"` // the policy of what its commands may reach; empty: nothing
	Asked   []Ask            `json:"asked,omitempty"`   // the requested mounts, by name
	Trees   []Tree           `json:"trees,omitempty"`   // its read-only trees, by name
	// Environment is a user's variables for the environment of commands. Their values are secrets: they are in memory
	// only, so a session that is read from disk has to be ensured again before commands of that user start.
	Environment Environment `json:"environment,omitzero"`
	Limits      *Lower      `json:"limits,omitempty"` // limits below the operator's; nil: none
}

// location is where a session's data are.
type location struct {
	node *Node
	key  Key
	dir  string
}

// session is one session's part of the node: its workspace, its commands, the changes of its files and what
// the service does for it. Each has a lock of its own; rank is the order in which they are taken.
type session struct {
	location

	users int       // guarded by the mu of the node's sessions
	idle  time.Time // guarded by the mu of the node's sessions

	workspace *workspace
	execs     *execs
	mutations mutations
	tasks     *tasks

	loading mutex // guards loaded
	loaded  bool
}

func newSession(n *Node, k Key) *session {
	at := location{node: n, key: k, dir: filepath.Join(n.o.Dir, k.folder(), k.Session)}
	execs := newExecs(at)
	return &session{
		location: at, execs: execs, tasks: newTasks(), mutations: mutations{location: at, mu: mutex{rank: rankMutations}},
		workspace: &workspace{
			location: at, execs: execs,
			kept: mutex{rank: rankKept}, starts: mutex{rank: rankStarts}, mu: mutex{rank: rankWorkspace},
		},
		loading: mutex{rank: rankLoading}, idle: n.o.Now(),
	}
}

func (l location) path(name ...string) string {
	return filepath.Join(append([]string{l.dir}, name...)...)
}

// load reads the session from disk, once, and determines the fate of interrupted changes.
func (s *session) load() error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.loaded {
		return nil
	}
	if err := s.readAll(); err != nil {
		return err
	}
	if s.workspace.meta != nil { // the session is not shared yet
		if err := s.mutations.recover(s.view()); err != nil {
			return err
		}
		if err := s.workspace.clearStaging(); err != nil {
			return err
		}
		s.workspace.mu.Lock()
		err := s.workspace.setAside("")
		s.workspace.mu.Unlock()
		if err != nil {
			return err
		}
	}
	s.loaded = true
	return nil
}

func (s *session) readAll() error {
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	var m meta
	switch err := read(s.path(metaFile), &m); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := s.execs.load(); err != nil {
		return err
	}
	s.workspace.meta = &m
	return nil
}

// clearStaging deletes what a crash interrupted. No write is in progress yet: a writer keeps the session in
// memory.
func (ws *workspace) clearStaging() error {
	left, err := os.ReadDir(ws.path("staging"))
	if err != nil {
		return fmt.Errorf("read the staging folder: %w", err)
	}
	for _, d := range left {
		dir := ws.path("staging", d.Name())
		if erase.All(dir) == nil {
			continue
		}
		if err := ws.node.dir.discard(dir); err != nil { // it takes room but blocks no call
			ws.node.o.Log.Error("cannot clear the staging folder of a workspace", "session", ws.key.Session, "error", err)
		}
	}
	return nil
}

// running returns the commands that run, or whose end is not recorded yet. It waits for a command that is
// being started.
func (s *session) running() []*Exec {
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	return s.execs.running()
}

// unwritten reports whether the session is in use: a command runs, only the journal has a command or an
// answer, or the session is locked.
func (s *session) unwritten() bool {
	if len(s.node.journal.unanswered(s.dir)) > 0 {
		return true
	}
	if !s.workspace.mu.TryLock() {
		return true
	}
	defer s.workspace.mu.Unlock()
	return s.execs.unwritten()
}

// admit refuses a stale generation. mu is held.
func (ws *workspace) admit(generation int64) error {
	if ws.meta == nil {
		return ErrNoWorkspace
	}
	if generation != 0 && generation != ws.meta.Generation {
		return fmt.Errorf("%w: generation %d was requested, but %d is here", ErrStaleGeneration, generation, ws.meta.Generation)
	}
	return nil
}

// fenceCall is admitCall and fence, but does not refuse a lower epoch of a call for an operation. mu is
// held.
func (ws *workspace) fenceCall(c Call) error {
	if ws.meta != nil {
		if err := ws.admitCall(c); err != nil {
			return err
		}
	}
	if c.Operation && ws.meta != nil && c.Epoch < ws.meta.seen(c.Holder) {
		return nil
	}
	return ws.fence(c)
}

// seen returns the highest epoch seen of a holder: of another session, or of the workspace's own.
func (m *meta) seen(holder string) int64 {
	if holder == "" {
		return m.Epoch
	}
	return m.Holders[holder]
}

// fence refuses a caller that has lost its session. It records a new holder's epoch before any other work
// for it. Only a new holder of the workspace's own session lifts a seal. mu is held.
func (ws *workspace) fence(c Call) error {
	if ws.meta == nil {
		return ErrNoWorkspace
	}
	switch seen := ws.meta.seen(c.Holder); {
	case c.Epoch < seen:
		return fmt.Errorf("%w: the request has epoch %d, but epoch %d was seen", ErrStaleEpoch, c.Epoch, seen)
	case c.Epoch == seen:
		return nil
	}
	m := *ws.meta
	if c.Holder == "" {
		m.Epoch, m.Sealed = c.Epoch, false
	} else {
		m.Holders = maps.Clone(m.Holders)
		if m.Holders == nil {
			m.Holders = map[string]int64{}
		}
		m.Holders[c.Holder] = c.Epoch
	}
	if err := save(ws.path(metaFile), m); err != nil {
		return fmt.Errorf("record the epoch: %w", err)
	}
	ws.meta = &m
	return nil
}

// prune drops expired results and answers, and the oldest results if there are too many.
func (s *session) prune() {
	now := s.node.o.Now()
	s.execs.prune(now)
	s.mutations.prune(now)
}
