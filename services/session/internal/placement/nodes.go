// Package placement decides on which sandbox node a session's workspace is.
//
// A workspace is on one node at a time, in a place that the session's holder stores
// under its lease. Each place has a higher generation than the one before, and a node
// refuses requests with another generation than its copy's. So a replica may wrongly
// believe a node to be lost: from the commit on that moves the workspace, the old
// place can no longer be used, and a job deletes its files when its node answers.
//
// Nodes are probed regularly. A node that has not answered for long is lost; its
// workspaces are made again on other nodes, from their last export.
package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ErrLost is why a context of Until ends.
var ErrLost = errors.New("the node that has the workspace is lost")

const (
	// looks is how often a node is probed within the time after which it is
	// lost.
	looks = 10
	// shortest and longest bound the time between two probes.
	shortest, longest = 50 * time.Millisecond, 3 * time.Second
	// probeTimeout bounds one probe.
	probeTimeout = 2 * time.Second
	// stayFor is how long turns do not try again to move a workspace that could not
	// leave its node.
	stayFor = 10 * time.Minute
)

// Config configures the nodes.
type Config struct {
	Names     []string // in the order of the configuration
	Group     *Group   // instead of Names: the servers that share the store
	LostAfter time.Duration
	Sandbox   Sandbox
	Store     interface {
		Draining(ctx context.Context) ([]string, error)
	}
	Log *slog.Logger
}

// Sandbox probes a node.
type Sandbox interface {
	Health(ctx context.Context, node string) error
	Capabilities(ctx context.Context, node string) (*sandboxv1.GetCapabilitiesResponse, error)
}

// Nodes has the state of the nodes. A nil one stands for the only node, which has no
// name and every workspace. It is safe for concurrent use.
type Nodes struct {
	Config

	mu       sync.Mutex // guards what follows
	names    []string
	states   map[string]*state
	draining []string
	stays    map[store.Key]time.Time // see Stay
	changed  chan struct{}           // closed and replaced when a context of Until may have to end
	hurry    chan struct{}           // holds a token when an unknown node was named: it may be new
}

// state is the known state of a node.
type state struct {
	known bool      // its last answer had its name
	since time.Time // time of its first missed answer; zero: it answers
	lost  bool
	beats bool // it belongs to a group, and beats
	empty bool // it belongs to a group, and has no workspace
}

// level returns the level of a log record about the node's silence, which harms no session
// if the node has no workspace.
func (s *state) level(l slog.Level) slog.Level {
	if s.empty {
		return slog.LevelDebug
	}
	return l
}

// New returns Nodes that count every node as reachable. Run probes them.
func New(c Config) *Nodes {
	if c.Group != nil {
		c.Names = []string{c.Group.Self.Name}
	}
	if len(c.Names) == 0 {
		return nil
	}
	n := &Nodes{Config: c, states: map[string]*state{}, stays: map[store.Key]time.Time{}, changed: make(chan struct{}), hurry: make(chan struct{}, 1)}
	n.name(c.Names)
	return n
}

// name sets the nodes. mu is held, or n is not shared yet.
func (n *Nodes) name(names []string) {
	n.names = names
	for _, name := range names {
		if n.states[name] == nil {
			n.states[name] = &state{}
		}
	}
}

// List returns the names of the nodes.
func (n *Nodes) List() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names
}

// Managed reports whether places are kept at all.
func (n *Nodes) Managed() bool { return n != nil }

// Run enlists this server in its group and probes the nodes until ctx ends, or until another
// server has taken this one's name.
func (n *Nodes) Run(ctx context.Context) error {
	if n == nil {
		return nil
	}
	defer n.Group.leave(ctx, n.Log)
	if err := n.Group.enlist(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(min(max(n.LostAfter/looks, shortest), longest))
	defer tick.Stop()
	for {
		if err := n.meet(ctx); err != nil {
			return err
		}
		n.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-n.hurry:
		}
	}
}

// look probes all nodes once.
func (n *Nodes) look(ctx context.Context) {
	var wg sync.WaitGroup
	names := n.List()
	for _, name := range names {
		wg.Go(func() {
			err := n.probe(ctx, name)
			if ctx.Err() == nil {
				n.note(ctx, name, err)
			}
		})
	}
	wg.Wait()
	if draining, err := n.Store.Draining(ctx); err == nil {
		n.mu.Lock()
		if !slices.Equal(draining, n.draining) {
			n.draining = draining
			n.wakeWaiters()
		}
		n.mu.Unlock()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, s := range n.states {
		if !slices.Contains(names, name) {
			n.age(ctx, name, s)
		}
	}
}

// probe checks that a node answers and, if its name was not confirmed lately, that it
// is the right node: another one may have got its address.
func (n *Nodes) probe(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(principal.With(ctx, principal.Service("default", "default")), probeTimeout)
	defer cancel()
	n.mu.Lock()
	known := n.states[name].known
	n.mu.Unlock()
	if known {
		return n.Sandbox.Health(ctx, name)
	}
	r, err := n.Sandbox.Capabilities(ctx, name)
	if err == nil && r.GetNode() != name {
		return fmt.Errorf("the address of the node %q belongs to the node %q: check session's sandbox-nodes and each sandbox's node", name, r.GetNode())
	}
	return err
}

// note records whether a node answered.
func (n *Nodes) note(ctx context.Context, name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.states[name]
	s.known = err == nil
	switch {
	case err == nil && s.since.IsZero():
	case err == nil:
		n.Log.InfoContext(ctx, "sandbox node answers again", "node", name, "after", time.Since(s.since))
		s.since, s.lost = time.Time{}, false
		n.wakeWaiters()
	case s.since.IsZero():
		n.Log.Log(ctx, s.level(slog.LevelWarn), "sandbox node does not answer", "node", name, "error", err, "lost_after", n.LostAfter)
		s.since = time.Now()
		n.wakeWaiters()
	default:
		n.age(ctx, name, s)
	}
}

// age marks a node as lost once it has not answered for long. mu is held.
func (n *Nodes) age(ctx context.Context, name string, s *state) {
	if s.since.IsZero() { // it is not listed any more
		s.since = time.Now()
	}
	if time.Since(s.since) >= n.LostAfter && !s.lost && !s.beats {
		n.Log.Log(ctx, s.level(slog.LevelError), "sandbox node is lost: its workspaces are restored from their last export when needed", "node", name)
		s.lost = true
		n.wakeWaiters()
	}
}

// wakeWaiters wakes the waiters. mu is held.
func (n *Nodes) wakeWaiters() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// of returns the state of a node. A node that is not configured is lost after the
// usual time: until then it may be a new one that this replica does not know yet.
// mu is held.
func (n *Nodes) of(name string) *state {
	s := n.states[name]
	if s == nil {
		s = &state{since: time.Now()}
		n.states[name] = s
		select {
		case n.hurry <- struct{}{}:
		default:
		}
	}
	return s
}

// Lost reports whether a node has not answered for long.
func (n *Nodes) Lost(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of(name).lost
}

// State is the state of a node.
type State int

// States of a node.
const (
	Ready  State = iota // it answers
	Silent              // it does not, and sessions wait for it
	Lost                // it has not answered for long
)

// State returns the state of a node.
func (n *Nodes) State(name string) State {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch s := n.of(name); {
	case s.lost:
		return Lost
	case !s.since.IsZero():
		return Silent
	}
	return Ready
}

// Known reports whether a node is configured.
func (n *Nodes) Known(name string) bool { return slices.Contains(n.List(), name) }

// Until returns a context that ends with ErrLost when the node of a session's workspace
// is lost and another node is available. Without one, the node is waited for. While unmade
// reports that nothing was made there, it ends as soon as the node does not answer and
// another one does (see Replace). The caller must call stop.
func (n *Nodes) Until(ctx context.Context, k store.Key, name string, unmade func() bool) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			n.mu.Lock()
			changed, leave, replace := n.changed, n.of(name).lost && n.choose(k, name) != "", n.replace(k, name) != ""
			n.mu.Unlock()
			leave = leave || replace && unmade()
			if leave {
				cancel(ErrLost)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// Choose returns a node for a session's workspace. It returns the same node for the
// same session as long as the same nodes are available, and all of them equally
// often over many sessions. It avoids one node, draining nodes and, if possible,
// nodes that do not answer. It returns "" if no node is left.
func (n *Nodes) Choose(k store.Key, avoid string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.choose(k, avoid)
}

// choose is Choose. mu is held.
func (n *Nodes) choose(k store.Key, avoid string) string {
	best, score, answers := "", uint64(0), false
	for _, name := range n.names {
		s := n.states[name]
		if name == avoid || slices.Contains(n.draining, name) || s.lost {
			continue
		}
		up := s.since.IsZero()
		if got := weight(k, name); best == "" || up && !answers || up == answers && got > score {
			best, score, answers = name, got, up
		}
		if n.Group != nil && best == n.Group.Self.Name { // the first of a group's nodes is this one, whose files are the nearest
			break
		}
	}
	return best
}

// First is Choose for a workspace that had no place yet: if no node is available,
// it returns the first one.
func (n *Nodes) First(k store.Key) string { return cmp.Or(n.Choose(k, ""), n.Names[0]) }

// weight orders the nodes for a session (rendezvous hashing).
func weight(k store.Key, name string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s", k.Tenant, k.Session, name)
	x := h.Sum64()
	x ^= x >> 33 // FNV's last bytes hardly affect its high bits
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// Drained reports whether a node is to get no more workspaces.
func (n *Nodes) Drained(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.draining, name)
}

// Stay records that a turn could not take a workspace away from a draining node. The next turns
// do not try for a while: each would wait, and its background commands would be ended. Moves of
// idle sessions ignore it.
func (n *Nodes) Stay(k store.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.stays, func(_ store.Key, until time.Time) bool { return time.Now().After(until) })
	n.stays[k] = time.Now().Add(stayFor)
}

// Stays reports whether Stay was called lately.
func (n *Nodes) Stays(k store.Key) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.stays[k])
}
