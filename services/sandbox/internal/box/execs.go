package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// execs are the commands of a session: those that run, and those whose results are kept. It is safe for
// concurrent use.
type execs struct {
	location

	mu      mutex // guards what follows
	all     map[string]*Exec
	started []*Exec // the execs that started here; ended ones stay until the next call of live
	// settled maps the calls of acknowledged execs to their time, so that a late repeat does not start them
	// again.
	settled map[string]time.Time
}

func newExecs(l location) *execs {
	return &execs{location: l, mu: mutex{rank: rankInner}, all: map[string]*Exec{}, settled: map[string]time.Time{}}
}

// load reads the execs from disk.
func (x *execs) load() error {
	entries, err := os.ReadDir(x.path("execs"))
	if err != nil {
		return fmt.Errorf("read the execs: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range entries {
		e, err := loadExec(x.node, x.path("execs", d.Name()))
		if err != nil {
			return err
		}
		if e != nil {
			x.all[e.rec.CallID] = e
		}
	}
	return x.loadSettled()
}

// find returns a call's exec, or nil; acknowledged means that it had one that was acknowledged.
func (x *execs) find(id string) (e *Exec, acknowledged bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, acknowledged = x.settled[id]
	return x.all[id], acknowledged
}

// add adds an exec that is about to start.
func (x *execs) add(e *Exec) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[e.rec.CallID], x.started = e, append(x.started, e)
}

// live returns the commands that are being started or run.
func (x *execs) live() []*Exec {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.started = slices.DeleteFunc(x.started, func(e *Exec) bool { return !e.active.Load() })
	return slices.Clone(x.started)
}

// running returns the commands that run, or whose end is not recorded yet.
func (x *execs) running() []*Exec {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []*Exec
	for _, e := range x.all {
		if !e.settled() {
			all = append(all, e)
		}
	}
	return all
}

// unwritten reports whether a command runs, or is only in the journal.
func (x *execs) unwritten() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.all {
		if !e.settled() || !e.keeper.recorded.Load() {
			return true
		}
	}
	return false
}

// list returns the execs that run or were not acknowledged, by id.
func (x *execs) list() []*Exec {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []*Exec
	for _, e := range x.all {
		if !e.mark() {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *Exec) int { return strings.Compare(a.ID(), b.ID()) })
	return all
}

// setMark records a mark in place of an exec.
func (x *execs) setMark(id string) error {
	if !callID.MatchString(id) {
		return fmt.Errorf("call id %q is not valid", id)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	dir := x.path("execs", id)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	now := x.node.o.Now().UTC()
	r := record{CallID: id, Started: now, Ended: now, Cancelled: true}
	if err := errors.Join(save(filepath.Join(dir, recordFile), r), durable.SyncDir(x.path("execs"))); err != nil {
		return fmt.Errorf("mark the call as cancelled: %w", err)
	}
	for _, name := range streamFiles {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	e := newExec(x.node, dir, r)
	e.keeper.recorded.Store(true)
	close(e.done)
	x.all[id] = e
	return nil
}

// acknowledge forgets an exec, but remembers that it existed.
func (x *execs) acknowledge(id string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.settle(id); err != nil {
		return err
	}
	x.remove(id)
	return nil
}

// forget deletes the stored data of an exec.
func (x *execs) forget(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(id)
}

// remove is forget, with mu held.
func (x *execs) remove(id string) {
	if e := x.all[id]; e != nil {
		e.abandon()
		delete(x.all, id)
	}
	if err := os.RemoveAll(x.path("execs", id)); err != nil {
		x.node.o.Log.Error("cannot delete the result of a command", "error", err)
	}
}

// abandon forgets all execs, whose folder is gone.
func (x *execs) abandon() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.all {
		e.abandon()
	}
	x.all = map[string]*Exec{}
}

// prune drops expired results, and the oldest ones if there are too many.
func (x *execs) prune(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	type old struct {
		id string
		at time.Time
	}
	var kept []old
	for id, e := range x.all {
		switch ended, ok := e.ended(); {
		case !ok:
		case now.Sub(ended) > x.node.o.Keep.For:
			x.drop(id)
		default:
			kept = append(kept, old{id, ended})
		}
	}
	slices.SortFunc(kept, func(a, b old) int { return a.at.Compare(b.at) })
	for _, o := range kept[:max(len(kept)-x.node.o.Keep.Finished, 0)] {
		x.drop(o.id)
	}
	x.pruneSettled(now)
}

// drop forgets an unacknowledged result, but remembers that it existed. mu is held.
func (x *execs) drop(id string) {
	if err := x.settle(id); err != nil {
		x.node.o.Log.Error("cannot drop the result of a command", "error", err)
		return
	}
	x.remove(id)
}
