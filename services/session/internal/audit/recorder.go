// Package audit records who changed what. Entries are written in batches; those that people rely on most are
// written before their call is answered.
package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/audit"
)

// Store keeps the entries.
type Store interface {
	AppendAudit(ctx context.Context, tenant string, entries []audit.Entry) error
}

const (
	// interval is how long an entry waits for others.
	interval = time.Second
	// most is how many entries may wait for a database that is away; then calls wait, too.
	most = 10_000
	// perWrite bounds the entries of one transaction.
	perWrite = 500
	// writeTimeout bounds a write, and lastWrite the writes at the end.
	writeTimeout = 10 * time.Second
	lastWrite    = 5 * time.Second
)

// Recorder writes entries. It is safe for concurrent use.
type Recorder struct {
	store Store
	log   *slog.Logger
	kick  chan struct{}

	mu      sync.Mutex
	waiting []waiting
	room    chan struct{} // closed when waiting has room again
}

type waiting struct {
	audit.Entry
	done chan struct{} // closed when the entry is written; nil: nothing waits for it
}

// NewRecorder returns a recorder; Run writes.
func NewRecorder(s Store, log *slog.Logger) *Recorder {
	return &Recorder{store: s, log: log, kick: make(chan struct{}, 1), room: make(chan struct{})}
}

// Record takes an entry. It returns when the entry is written if it is to be synced, and otherwise at once. Its
// error says that ctx ended before.
func (r *Recorder) Record(ctx context.Context, e audit.Entry, synced bool) error {
	w := waiting{Entry: e}
	if synced {
		w.done = make(chan struct{})
	}
	if err := r.put(ctx, w); err != nil || !synced {
		return err
	}
	select {
	case r.kick <- struct{}{}:
	default: // a write is about to begin
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put adds an entry to those that wait, once there is room.
func (r *Recorder) put(ctx context.Context, w waiting) error {
	for {
		r.mu.Lock()
		if len(r.waiting) < most {
			r.waiting = append(r.waiting, w)
			r.mu.Unlock()
			return nil
		}
		room := r.room
		r.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Run writes entries until ctx ends, and then the last ones.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer cancel()
			r.write(last)
			return nil
		case <-tick.C:
		case <-r.kick:
		}
		r.write(ctx)
	}
}

// write writes what waits, one tenant after another. What cannot be written waits again, in its order.
func (r *Recorder) write(ctx context.Context) {
	r.mu.Lock()
	all := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	tenants := map[string][]waiting{}
	for _, w := range all {
		tenants[w.Tenant] = append(tenants[w.Tenant], w)
	}
	var left []waiting
	for tenant, entries := range tenants {
		left = append(left, r.writeTenant(ctx, tenant, entries)...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(left, r.waiting...)
	if len(r.waiting) < most {
		close(r.room)
		r.room = make(chan struct{})
	}
}

// writeTenant returns what could not be written.
func (r *Recorder) writeTenant(ctx context.Context, tenant string, entries []waiting) []waiting {
	for len(entries) > 0 {
		n := min(len(entries), perWrite)
		batch := make([]audit.Entry, n)
		for i, w := range entries[:n] {
			batch[i] = w.Entry
		}
		bounded, cancel := context.WithTimeout(ctx, writeTimeout)
		err := r.store.AppendAudit(bounded, tenant, batch)
		cancel()
		if err != nil {
			r.log.WarnContext(ctx, "cannot write the audit log", "tenant", tenant, "entries", len(entries), "error", err)
			return entries
		}
		for _, w := range entries[:n] {
			if w.done != nil {
				close(w.done)
			}
		}
		entries = entries[n:]
	}
	return nil
}
