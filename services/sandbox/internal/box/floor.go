package box

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
)

const (
	// floorPause is the pause between two looks at the floor of the disk.
	floorPause = 250 * time.Millisecond
	// floorPatience is how long the commands of a session may take to end before the next look.
	floorPatience = 5 * time.Second
	// spacePatience is how long the file system may take to free the space of ended commands.
	spacePatience = 5 * time.Second
	// minWrittenBytes is what a session's commands may have written and still be spared.
	minWrittenBytes = 1 << 20
	// startLooks is for how many looks a session whose command starts spares the others.
	startLooks = 8
	// inodeBytes is how many bytes a new file counts for, besides its contents.
	inodeBytes = 4096
)

// floor ends commands while less of the disk that they write to is free than must be. It is safe for
// concurrent use.
type floor struct {
	space DiskSpace // nil: no command is ended for room
	log   *slog.Logger
	now   func() time.Time
	guard sync.WaitGroup // the goroutine that keeps the floor
	quit  chan struct{}  // closed when no command will run any more
	end   func()         // closes quit, once

	waited int // looks that ended nothing, for a command that starts; the guard's alone

	mu      sync.Mutex            // guards what follows
	running map[*running]struct{} // the commands that run
	guarded bool                  // a goroutine keeps the floor
}

func newFloor(space DiskSpace, log *slog.Logger, now func() time.Time) *floor {
	quit := make(chan struct{})
	return &floor{space: space, log: log, now: now, running: map[*running]struct{}{}, quit: quit, end: sync.OnceFunc(func() { close(quit) })}
}

// close ends the guard, once no command will run any more.
func (f *floor) close() {
	f.end()
	f.guard.Wait()
}

// running is a command that runs or starts.
type running struct {
	session *session
	process Process // nil: it starts
	stop    func(Outcome)
	begun   time.Time
	size    disk.Size // of the workspace when it began, if sized
	sized   bool
	stopped bool // it is being ended to make room; guarded by the floor's mu
}

// starts registers a command that is about to start. Its processes may write before the node has them.
func (s *session) starts() *running {
	r := &running{session: s, begun: s.node.floor.now()}
	r.size, r.sized = s.workspace.usage.Last()
	s.node.floor.add(r)
	return r
}

// runs says that the command has started.
func (r *running) runs(p Process, stop func(Outcome)) {
	f := r.session.node.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	r.process, r.stop = p, stop
}

// ended says that the command has ended, or has not started.
func (r *running) ended() {
	f := r.session.node.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, r)
}

// add registers a command, and begins to keep the floor.
func (f *floor) add(r *running) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[r] = struct{}{}
	if f.space != nil && !f.guarded {
		f.guarded = true
		f.guard.Go(f.keep)
	}
}

// activeSession is a session whose commands run and are not being ended to make room.
type activeSession struct {
	session  *session
	commands []*running // none: its first one starts
	wrote    int64      // bytes, approximately
	begun    time.Time  // when its last command began
}

// activeSessions returns the active sessions: the one that has written most first, and of two equal ones the
// one that began later.
func (f *floor) activeSessions() []*activeSession {
	f.mu.Lock()
	of := map[*session]*activeSession{}
	for r := range f.running {
		if r.stopped {
			continue
		}
		a := of[r.session]
		if a == nil {
			a = &activeSession{session: r.session}
			of[r.session] = a
		}
		if r.process == nil {
			a.begun = r.begun
			continue
		}
		a.commands = append(a.commands, r)
	}
	f.mu.Unlock()
	all := make([]*activeSession, 0, len(of))
	for _, a := range of {
		a.measure()
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *activeSession) int { return cmp.Or(cmp.Compare(b.wrote, a.wrote), b.begun.Compare(a.begun)) })
	return all
}

// measure finds out how much the session's commands have written: what the workspace has grown by since the
// first of them began, and what their processes have written by themselves.
func (a *activeSession) measure() {
	now, known := a.session.workspace.usage.Last()
	var grown, written int64
	for _, r := range a.commands {
		if known && r.sized {
			grown = max(grown, now.Bytes-r.size.Bytes+inodeBytes*(now.Inodes-r.size.Inodes))
		}
		written = max(written, r.process.Written()) // of the whole sandbox
		if r.begun.After(a.begun) {
			a.begun = r.begun
		}
	}
	a.wrote = grown + written
}

// keep ends commands while less of the disk is free than must be, as long as commands run.
func (f *floor) keep() {
	pause := time.NewTimer(floorPause)
	defer pause.Stop()
	for {
		select {
		case <-f.quit:
			return
		case <-pause.C:
		}
		f.mu.Lock()
		f.guarded = len(f.running) > 0
		goOn := f.guarded
		f.mu.Unlock()
		if !goOn {
			return
		}
		f.endHeaviestWriter()
		pause.Reset(floorPause)
	}
}

// endHeaviestWriter ends the commands of one session if the disk is nearly full: of the one that has written most. It
// spares sessions that have written little, unless the disk has lost half of the room that must stay free. While another
// session's command starts, which may write already, it spares them for a few looks more.
func (f *floor) endHeaviestWriter() {
	waited := f.waited
	f.waited = 0
	short := f.space.Check()
	if short == nil || !f.space.Tight() { // the second: its room is unknown
		return
	}
	all := f.activeSessions()
	at := slices.IndexFunc(all, func(a *activeSession) bool { return len(a.commands) > 0 })
	if at < 0 || all[0].wrote < minWrittenBytes && !f.space.Low() {
		return
	}
	starts := slices.ContainsFunc(all, func(a *activeSession) bool { return len(a.commands) == 0 })
	if starts && all[0].wrote < minWrittenBytes && waited < startLooks {
		f.waited = waited + 1
		return
	}
	most := all[at]
	f.log.Warn("the disk is nearly full: ending the commands of the session that wrote most", "session", most.session.key.Session, "commands", len(most.commands), "bytes", most.wrote, "error", short)
	f.mu.Lock()
	for _, r := range most.commands {
		r.stopped = true
	}
	f.mu.Unlock()
	for _, r := range most.commands {
		r.stop(overLimit(DiskLimit, hitDisk, "the command was ended because "+short.Error()+". What it has written to the workspace is kept. Write less at a time, or ask the operator for room"))
	}
	late := time.NewTimer(floorPatience)
	defer late.Stop()
	for _, r := range most.commands {
		select {
		case <-r.process.Ended():
		case <-late.C:
			return
		}
	}
	f.awaitSpace()
}

// awaitSpace waits until the floor holds, because a file system may free the space of deleted files late. It
// gives up when that takes long, or when what is free falls further.
func (f *floor) awaitSpace() {
	bytes, inodes := f.space.Free()
	late := time.NewTimer(spacePatience)
	defer late.Stop()
	look := time.NewTicker(floorPause)
	defer look.Stop()
	for f.space.Check() != nil {
		b, i := f.space.Free()
		if bytes-b >= minWrittenBytes || inodes-i >= minWrittenBytes/inodeBytes {
			return
		}
		bytes, inodes = max(bytes, b), max(inodes, i)
		select {
		case <-f.quit:
			return
		case <-late.C:
			return
		case <-look.C:
		}
	}
}
