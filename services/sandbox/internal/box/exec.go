package box

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
)

// Exec is a running or ended command. It is safe for concurrent use.
type Exec struct {
	node   *Node
	done   chan struct{} // closed when nothing of it runs, and its end is recorded
	input  chan struct{} // holds one token: the holder may write standard input
	output *output
	limits Limits      // only of one that was started here
	common Limits      // of all in its sandbox together; only of one that was started here
	active atomic.Bool // it is being started, or runs
	keeper recordKeeper
	start  start
	noted  bool       // a record was written while it ran; only for the goroutine that follows the process
	quota  quotaWatch // only for that goroutine

	mu      sync.Mutex // guards what follows
	rec     record
	end     *record  // with its end, perhaps not yet published
	stdin   bool     // whether standard input was requested
	network Followed // only of one that was started here
	shared  sharing
	process Process // nil when it does not run
	stopped *Outcome
}

// start is what the journal has of a command's start.
type start struct {
	entry startEntry
	file  int64 // number of the journal's file that has the entry; guarded by the journal's mu
}

// sharing tells which commands may run in one sandbox: those that are equal in it.
type sharing struct {
	mounts string // as EncodeMounts encodes them
	user   string // the user that owns the sandbox; empty: no user
}

// Output streams.
const (
	Stdout = 0
	Stderr = 1
)

var streamFiles = [2]string{"stdout", "stderr"}

func newExec(n *Node, dir string, r record) *Exec {
	e := &Exec{
		node: n, keeper: recordKeeper{dir: dir}, rec: r, network: noFollower{},
		done: make(chan struct{}), input: make(chan struct{}, 1),
		output: &output{dir: dir, call: r.CallID, log: n.o.Log, changed: make(chan struct{})},
	}
	e.output.flood = func(most int64) {
		e.stop(overLimit(OutputLimit, hitFlood, fmt.Sprintf("the command was ended because it wrote more than %d bytes of output. Write to a file instead", most)))
	}
	e.input <- struct{}{}
	return e
}

// Argv returns the command.
func (e *Exec) Argv() []string { return e.rec.Argv }

// ID returns the call's id.
func (e *Exec) ID() string { return e.rec.CallID }

// Outcome returns how the command ended; nil while it runs.
func (e *Exec) Outcome() *Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rec.Outcome
}

// mark reports whether this is only a mark that refuses a start.
func (e *Exec) mark() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rec.mark()
}

// ended returns when the command ended, or when the mark was set.
func (e *Exec) ended() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rec.Ended, !e.rec.Ended.IsZero()
}

// settled reports whether the command has ended and its end is recorded.
func (e *Exec) settled() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

func (e *Exec) cancelled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rec.Cancelled
}

// stop kills the command for a reason. Only the first reason before its end counts.
func (e *Exec) stop(why Outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped != nil || e.rec.Outcome != nil {
		return
	}
	e.stopped = &why
	if e.process != nil {
		e.process.Kill()
	}
}

// run follows a process to its end. It owns the process.
func (e *Exec) run(p Process, started time.Time, watch watch) {
	var exit Exit
	looked := false
	if p.Stderr() != nil && endsSoon(p) { // and is no terminal, which buffers little
		exit = p.Wait()
		e.output.copyRemaining(p, e.limits)
	} else {
		copied := e.output.copy(p, e.limits)
		exit = e.attend(p, func() {
			e.remember()
			e.lookAtTerminals(p.Terminals())
			e.look(watch(e.limits, false))
			looked = true
		})
		e.output.await(p, copied)
	}
	if in := p.Stdin(); in != nil {
		_ = in.Close()
	}
	e.look(watch(e.limits, !looked)) // including what was written since the last count
	e.finish(exit, e.node.o.Now().Sub(started))
}

// soon is how long a command runs before its output is read. Most commands have ended by then and need only
// one read.
const soon = 2 * time.Millisecond

func endsSoon(p Process) bool {
	late := time.NewTimer(soon)
	defer late.Stop()
	select {
	case <-p.Ended():
		return true
	case <-late.C:
		return false
	}
}

// watch counts a workspace. It returns which limit is exceeded, and how. quick means that the command ended
// before the first look.
type watch func(l Limits, quick bool) (limit, why string)

// look ends the command if a limit of the disk is exceeded.
func (e *Exec) look(limit, why string) {
	e.quota.look()
	switch limit {
	case "":
	case hitStorage:
		e.stop(overLimit(WorkspaceLimit, limit, "the command was ended because "+why+". Delete files there that are not needed"))
	default:
		e.stop(overLimit(WorkspaceLimit, limit, "the command was ended because the workspace is too large: "+why+". Delete files that are not needed"))
	}
}

// attend waits for the end and enforces the time limit. It checks the workspace from time to time.
func (e *Exec) attend(p Process, look func()) Exit {
	inTime := limitTime(p, e.limits.Timeout, func() {
		e.stop(overLimit(TimedOut, hitTimeout, "the command was ended after "+e.limits.Timeout.String()+", its time limit"))
	})
	pause := time.NewTimer(disk.LookPause)
	defer pause.Stop()
	for {
		select {
		case <-p.Ended():
			inTime()
			return p.Wait()
		case <-pause.C:
			before := time.Now()
			look()
			// A large workspace takes long to count: spend a fifth of the time on it.
			pause.Reset(max(disk.LookPause, 4*time.Since(before)))
		}
	}
}

// limitTime calls stop when the time limit expires, even during a long look at many files. A command that
// has already ended is in time, even if its end is not yet published. The caller calls ended once the
// command has ended.
func limitTime(p Process, most time.Duration, stop func()) (ended func()) {
	over := make(chan struct{})
	deadline := time.AfterFunc(most, func() {
		defer close(over)
		select {
		case <-p.Ended():
		default:
			stop()
		}
	})
	return func() {
		if !deadline.Stop() {
			<-over
		}
	}
}

// finish publishes the end of a command. The end of a quick command is journaled first. Other ends are
// published first, then recorded and synced, so that followers do not wait for the disk. A crash in between
// makes the command a lost one.
func (e *Exec) finish(exit Exit, wall time.Duration) {
	quick := wall <= time.Second
	if !e.conclude(exit, wall, quick) {
		runtime.Gosched() // followers go first
		write := noteNew
		if !quick {
			write = save
		}
		if err := e.keepRecord(write); err != nil {
			e.node.o.Log.Error("cannot record the end of a command", "call_id", e.rec.CallID, "error", err)
			e.node.journal.markUnrecorded(e)
		} else {
			e.node.journal.markRecorded(e)
		}
	}
	close(e.done)
}

// remember writes a record of a long-running command: the journal does not keep a start for good.
func (e *Exec) remember() {
	if e.noted {
		return
	}
	if err := e.keepRecord(noteNew); err != nil {
		e.node.o.Log.Error("cannot record a command", "call_id", e.rec.CallID, "error", err)
		return
	}
	e.noted = true
	e.node.journal.markRecorded(e)
}

// keepRecord writes the current record, unless nothing of it is to be stored any more.
func (e *Exec) keepRecord(write func(path string, value any) error) error {
	return e.keeper.keep(e.latest, write)
}

// latest returns the record with all that is known, even if it is not published yet.
func (e *Exec) latest() record {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end == nil {
		return e.rec
	}
	r := *e.end
	r.Cancelled = e.rec.Cancelled
	return r
}

// abandon stops all storing of the exec.
func (e *Exec) abandon() {
	e.keeper.drop()
	e.node.journal.markRecorded(e)
}

// conclude publishes the command's end to its followers. If journal is set, it writes the end to the
// journal first and reports whether that succeeded.
func (e *Exec) conclude(exit Exit, wall time.Duration, journal bool) (journaled bool) {
	uses := e.network.Uses()
	e.mu.Lock()
	o := e.judge(exit)
	o.Network = uses
	o.Throttled = max(exit.Throttled, e.throttledFor(exit, wall))
	o.Hits = append(o.Hits, e.met(exit, &o, wall)...)
	o.Wall, o.CPU, o.MaxMemory = wall, exit.CPU, exit.MaxMemory
	kept, written, _ := e.output.counts()
	o.Truncated = written > kept
	end := e.rec
	end.Outcome, end.Ended = &o, e.node.o.Now().UTC()
	e.end = &end
	e.mu.Unlock()
	if journal {
		journaled = e.node.journal.end(e.start.entry.ending(end), e)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active.Store(false)
	e.rec.Outcome, e.rec.Ended, e.process = end.Outcome, end.Ended, nil
	e.output.wake()
	return journaled
}

// sigkillStatus is the exit status of a shell whose last command was killed. A shell that returns another
// status has gone on and has an end of its own.
const sigkillStatus = 128 + 9

// judge determines why a command ended. mu is held.
func (e *Exec) judge(exit Exit) Outcome {
	switch {
	case exit.NotStarted != "" && exit.Crowded:
		return overLimit(NotStarted, hitProcesses, exit.NotStarted)
	case exit.NotStarted != "":
		return Outcome{Reason: NotStarted, Message: exit.NotStarted}
	case e.stopped != nil:
		return *e.stopped
	case exit.OOMKilled && (exit.Signal == int(unix.SIGKILL) || exit.Status == sigkillStatus || exit.Lost):
		o := overLimit(OutOfMemory, hitMemory, fmt.Sprintf("the command exceeded its memory limit of %d bytes. Work on less at a time", e.limits.MemoryBytes)+scratchNote(exit))
		o.ExitCode = exit.Status
		return o
	case exit.Lost:
		return Outcome{Reason: Lost, Message: "the sandbox broke down while the command ran: it may have taken effect"}
	case exit.Signal == int(unix.SIGXFSZ):
		o := overLimit(FileLimit, hitFile, fmt.Sprintf("the command was ended because it wrote a file above the limit of %d bytes. Write several smaller ones", e.limits.FileBytes))
		o.Signal = exit.Signal
		return o
	case exit.Signal != 0:
		return Outcome{Reason: Signaled, Signal: exit.Signal, Message: "a signal ended the command: " + strconv.Itoa(exit.Signal)}
	}
	return Outcome{Reason: Exited, ExitCode: exit.Status}
}
