// Package placement says on which sandbox node a session's workspace is.
//
// A workspace is on one node at a time, in a place that the session's holder writes
// down under its lease. Each place has a higher generation than the one before, and a
// node refuses who names another one than its copy's. So it is harmless that a
// replica believes a node to be lost that others still reach: from the commit on that
// moves the workspace, what the old place has is of no use to anybody, and a job
// deletes it as soon as its node answers.
//
// Nodes are asked every now and then. One that has not answered for long is lost;
// its workspaces are made again elsewhere, from their last export.
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

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ErrLost is why a context of Until ends.
var ErrLost = errors.New("the node that has the workspace is lost")

const (
	// looks is how often a node is asked within the time after which it is lost.
	looks = 10
	// shortest and longest bound the time between two questions.
	shortest, longest = 50 * time.Millisecond, 3 * time.Second
	// probeTimeout bounds one question.
	probeTimeout = 2 * time.Second
	// stayFor is how long turns let a workspace stay that could not leave its node.
	stayFor = 10 * time.Minute
)

// Config says which nodes there are.
type Config struct {
	Names     []string // in the order of the configuration
	Group     *Group   // in place of Names: the servers that share the store
	LostAfter time.Duration
	// Sandbox reaches the nodes by their names (kit/node).
	Sandbox sandboxv1.WorkspaceServiceClient
	Health  healthpb.HealthClient
	Store   interface {
		Draining(ctx context.Context) ([]string, error)
	}
	Log *slog.Logger
}

// Nodes knows which nodes can be reached. A nil one stands for the one node that has
// no name and every workspace. It is safe for concurrent use.
type Nodes struct {
	Config

	mu       sync.Mutex // guards what follows
	names    []string
	states   map[string]*state
	draining []string
	stays    map[store.Key]time.Time // see Stay
	changed  chan struct{}           // closed, and made anew, when what Until waits for may have come
	hurry    chan struct{}           // has one when a node was named that is not known: it may be new
}

// state is what is known of a node.
type state struct {
	known bool      // it answered last time, by its name
	since time.Time // when it did not answer first; zero: it does
	lost  bool
	beats bool // it is of a group, and notes in the store that it runs
	empty bool // it is of a group, and has no workspace
}

// level is the level of a log record about the node's silence, which harms no session
// when the node has no workspace.
func (s *state) level(l slog.Level) slog.Level {
	if s.empty {
		return slog.LevelDebug
	}
	return l
}

// New makes Nodes that take every node for reachable. Run finds out.
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

// name sets which nodes there are. mu is held, or n is not shared yet.
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

// Managed says whether places are kept at all.
func (n *Nodes) Managed() bool { return n != nil }

// Run enlists this server in its group and asks the nodes until ctx ends, or until another
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

// look asks all nodes once.
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
			n.tell()
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

// probe asks a node whether it is there, and, when it has not said so lately, whether
// it is the one that is meant: another one may have got its address.
func (n *Nodes) probe(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(node.At(principal.With(ctx, principal.Default()), name), probeTimeout)
	defer cancel()
	n.mu.Lock()
	known := n.states[name].known
	n.mu.Unlock()
	if known {
		_, err := n.Health.Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
	r, err := n.Sandbox.GetCapabilities(ctx, &sandboxv1.GetCapabilitiesRequest{})
	if err == nil && r.GetNode() != name {
		return fmt.Errorf("at the address of the node %q answers %q: check session's sandbox-nodes, and the sandboxes' node", name, r.GetNode())
	}
	return err
}

// note takes down whether a node answered.
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
		n.tell()
	case s.since.IsZero():
		n.Log.Log(ctx, s.level(slog.LevelWarn), "sandbox node does not answer", "node", name, "error", err, "lost_after", n.LostAfter)
		s.since = time.Now()
	default:
		n.age(ctx, name, s)
	}
}

// age lets a node that does not answer be lost once its time is up. mu is held.
func (n *Nodes) age(ctx context.Context, name string, s *state) {
	if s.since.IsZero() { // it is not listed any more
		s.since = time.Now()
	}
	if time.Since(s.since) >= n.LostAfter && !s.lost && !s.beats {
		n.Log.Log(ctx, s.level(slog.LevelError), "sandbox node is lost: its workspaces are made again from their last export as they are needed", "node", name)
		s.lost = true
		n.tell()
	}
}

// tell has whoever waits look again. mu is held.
func (n *Nodes) tell() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// of is what is known of a node. One that is not among those that are configured is
// lost after the usual time: until then it may be a new one, of which this replica
// is about to hear. mu is held.
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

// Lost says whether a node has not answered for long.
func (n *Nodes) Lost(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of(name).lost
}

// State is how a node stands.
type State int

// The states of a node.
const (
	Ready  State = iota // it answers
	Silent              // it does not, and is waited for
	Lost                // it has not answered for long
)

// State says how a node stands.
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

// Known says whether a node is configured.
func (n *Nodes) Known(name string) bool { return slices.Contains(n.List(), name) }

// Until returns a context that ends with ErrLost when the node of a session's workspace
// is lost and there is another one to go to. Without one the node is waited for. stop
// must be called.
func (n *Nodes) Until(ctx context.Context, k store.Key, name string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			n.mu.Lock()
			changed, leave := n.changed, n.of(name).lost && n.choose(k, name) != ""
			n.mu.Unlock()
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

// Choose picks a node for a session's workspace: the same for the same session as
// long as the same ones are to be had, and all of them equally often over many
// sessions. It avoids one, those that are drained, and, if it can, those that do not
// answer. Empty: there is none.
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
		if n.Group != nil && best == n.Group.Self.Name { // the first; its files are the nearest
			break
		}
	}
	return best
}

// First is Choose for a workspace that was nowhere yet: when there is no node to be
// had, it waits for the first one.
func (n *Nodes) First(k store.Key) string { return cmp.Or(n.Choose(k, ""), n.Names[0]) }

// weight orders the nodes for a session (rendezvous hashing).
func weight(k store.Key, name string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s", k.Tenant, k.Session, name)
	x := h.Sum64()
	x ^= x >> 33 // FNV's last bytes hardly reach its high bits
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// Drained says whether a node is to get no more workspaces.
func (n *Nodes) Drained(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.draining, name)
}

// Stay notes that a turn could not take a workspace away from a node that is drained. The turns
// to come do not try for a while, for each would wait and have its commands in the background
// ended. Those who move the workspaces of sessions that rest do not ask.
func (n *Nodes) Stay(k store.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.stays, func(_ store.Key, until time.Time) bool { return time.Now().After(until) })
	n.stays[k] = time.Now().Add(stayFor)
}

// Stays tells whether that was noted lately.
func (n *Nodes) Stays(k store.Key) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.stays[k])
}
