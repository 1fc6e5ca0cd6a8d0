// Package attached drives turns by processes of the operator's own, which attach over a stream.
//
// A process names its runtime and takes turns of agents with this runtime. For each step it gets the
// conversation, and says what the model is asked, or what the agent says itself. All else is the session's,
// as with every runtime.
//
// The log is the truth. A process that is lost in the middle of a step loses that step alone: another process
// gets the conversation and the resume point of the last committed message. Nothing of a turn is in the
// process alone, so no call is made twice.
//
// A turn runs where its process is attached. Replicas write into the store which processes they have; a replica
// whose turn needs a process of another one hands the session over to it.
package attached

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Config is the operator's.
type Config struct {
	Wait     time.Duration `key:"wait" help:"how long a turn waits while no process is attached for its runtime; then it fails"`
	Patience time.Duration `key:"patience" help:"how long an attached process may say nothing about a step that it has; then another process gets the turn"`
	Alive    time.Duration `key:"alive" help:"how often an attached process says at least that it works; after three times as long it counts as lost"`
}

// Defaults returns the default configuration.
func Defaults() Config {
	return Config{Wait: time.Minute, Patience: 5 * time.Minute, Alive: 5 * time.Second}
}

// Validate reports the first fault.
func (c Config) Validate() error {
	switch {
	case c.Wait < 0:
		return fmt.Errorf("wait: %v is less than 0", c.Wait)
	case c.Patience < time.Second:
		return fmt.Errorf("patience: %v is less than 1s", c.Patience)
	case c.Alive < 100*time.Millisecond:
		return fmt.Errorf("alive: %v is less than 100ms", c.Alive)
	default:
		return nil
	}
}

// beat is how often a replica writes which processes it has.
const beat = time.Second

// name is a runtime of a tenant.
type name struct{ tenant, runtime string }

// lease is what holds a turn: a session may be held anew before its earlier holder has ended.
type lease struct {
	store.Key
	epoch int64
}

func leaseOf(sc state.Scope) lease { return lease{sc.Lease.Key, sc.Lease.Epoch} }

// Hub has the processes of a replica and the turns that they drive.
type Hub struct {
	config  Config
	store   store.Attachments
	replica string
	log     *slog.Logger

	streams sync.WaitGroup // goroutines that read from processes

	mu        sync.Mutex
	draining  bool
	processes map[name][]*process
	held      map[lease]*holding
	steps     int64         // the last id; it begins anywhere, as a late message for another server must not fit
	changed   chan struct{} // closed when a place may have become free
}

// New returns a hub without processes. Run must run.
func New(c Config, s store.Attachments, replica string, log *slog.Logger) *Hub {
	return &Hub{config: c, store: s, replica: replica, log: log, processes: map[name][]*process{}, held: map[lease]*holding{}, steps: rand.Int64N(1 << 52), changed: make(chan struct{})} //nolint:gosec // steps only differ from those of an earlier start
}

// Run tells the other replicas which processes are attached, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	told := false
	for {
		all, changed := h.attachments()
		if told || len(all) > 0 {
			if err := h.store.PutAttachments(ctx, h.replica, all, 4*beat); err != nil && ctx.Err() == nil {
				h.log.WarnContext(ctx, "cannot write which runtimes are attached; other replicas may not find them", "error", err)
			}
			told = len(all) > 0
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			if told {
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), beat)
				defer cancel()
				_ = h.store.PutAttachments(last, h.replica, nil, beat) // otherwise they expire
			}
			return nil
		}
	}
}

// attachments returns how many processes each runtime has, and what is closed when that changes.
func (h *Hub) attachments() ([]store.Attachment, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []store.Attachment
	for n, processes := range h.processes {
		a := store.Attachment{Tenant: n.tenant, Runtime: n.runtime, Replica: h.replica}
		for _, p := range processes {
			if !p.draining {
				a.Processes++
				a.Places += p.places
			}
			a.Turns += p.turns
		}
		if a.Processes > 0 && !h.draining {
			all = append(all, a)
		}
	}
	return all, h.changed
}

// change wakes what waits for a place. The caller holds mu.
func (h *Hub) change() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// Drain gives no more turns to processes and tells them to attach elsewhere.
func (h *Hub) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	for _, processes := range h.processes {
		for _, p := range processes {
			p.offer(drain())
		}
	}
	h.change()
}

// Close waits until no stream is read any more.
func (h *Hub) Close() { h.streams.Wait() }

// Runtime is what is attached for a runtime of a tenant, on all replicas.
type Runtime struct {
	Name                     string
	Processes, Places, Turns int
}

// Runtimes lists what is attached for a tenant.
func (h *Hub) Runtimes(ctx context.Context, tenant string) []Runtime {
	all, err := h.store.ListAttachments(ctx, tenant, "")
	if err != nil {
		h.log.WarnContext(ctx, "cannot read which runtimes other replicas have", "error", err)
	}
	here, _ := h.attachments()
	all = slices.DeleteFunc(all, func(a store.Attachment) bool { return a.Replica == h.replica })
	for _, a := range here {
		if a.Tenant == tenant {
			all = append(all, a)
		}
	}
	var out []Runtime
	for _, a := range all {
		i := slices.IndexFunc(out, func(r Runtime) bool { return r.Name == a.Runtime })
		if i < 0 {
			i, out = len(out), append(out, Runtime{Name: a.Runtime})
		}
		out[i].Processes += a.Processes
		out[i].Places += a.Places
		out[i].Turns += a.Turns
	}
	return out
}
