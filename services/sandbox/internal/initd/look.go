package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/stream"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// counter is nil if init need not inspect what commands hold, because the service can.
var counter *held.Counter

// countIn makes init count what commands hold in the file system of a folder.
func countIn(folder string) error {
	var err error
	if counter, err = held.Of(folder); err != nil {
		return fmt.Errorf("count what is held of %s: %w", folder, err)
	}
	return nil
}

// begun are the first processes of commands, which share init's memory until they have executed their
// programs, and the number of forks in progress.
var begun struct {
	sync.Mutex

	pids   map[int]struct{}
	making int
}

// beginning marks a fork in progress. The caller reports the child's pid with made(pid), or 0 if it failed.
func beginning() (made func(pid int)) {
	if counter == nil {
		return func(int) {}
	}
	begun.Lock()
	defer begun.Unlock()
	begun.making++
	return func(pid int) {
		begun.Lock()
		defer begun.Unlock()
		begun.making--
		if pid == 0 {
			return
		}
		if begun.pids == nil {
			begun.pids = map[int]struct{}{}
		}
		begun.pids[pid] = struct{}{}
	}
}

// over records that a process has ended.
func over(pid int) {
	begun.Lock()
	defer begun.Unlock()
	delete(begun.pids, pid)
}

// beside returns all processes but init. It reads begun last, so that every listed process is known by
// then.
func beside() held.Processes {
	all := held.Beside()
	begun.Lock()
	defer begun.Unlock()
	all.First, all.Starting = slices.Collect(maps.Keys(begun.pids)), begun.making
	return all
}

// looks answers questions about what commands hold, one at a time.
type looks struct {
	mux   *stream.Mux
	under sync.Mutex // held while a question is answered
}

// answer looks and sends what it has found, while the stream goes on. A second question before the answer
// is malformed: the service waits for the answer.
func (l *looks) answer(packet []byte) error {
	id, err := wire.DecodeID(packet)
	if err != nil || counter == nil || !l.under.TryLock() {
		return errors.Join(wire.ErrMalformed, err)
	}
	go func() {
		sum := counter.Look(directly, beside, held.LookTime)
		p := wire.Reply{
			Kind: wire.Held, ID: id, Deleted: uint64(sum.Deleted), Terminals: uint32(sum.Terminals),
			Unsure: uint32(sum.Unsure), Written: uint64(sum.Written + written.Load()),
		}
		l.under.Unlock()           // the next question comes after the answer
		_ = l.mux.Send(p.Encode()) // the stream's end is seen elsewhere
	}()
	return nil
}

func directly(f func() error) error { return f() }
