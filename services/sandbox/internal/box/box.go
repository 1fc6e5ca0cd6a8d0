// Package box owns the sandboxes of one node: the sessions' workspaces on disk, the commands that run in
// them, and the durable records of both.
//
// The disk is the truth. All data of a session lies in one folder, `<data>/<tenant>/<session>`:
//
//	workspace/       the files, shown to commands as /workspace
//	home/            the home directory of its commands: caches, history
//	workspace.json   its generation, owner and the highest epoch seen
//	execs/<call>/    record.json, stdout, stderr of a command
//	mutations/       answers of file changes, by call
//	interrupted      changes that a crash interrupted, until the workspace is next used
//	staging/         files that are being written
//	snapshots/       earlier states of the workspace
//
// The node's journal is in `.starts-0` and `.starts-1`. It holds recent command starts, the outcomes of
// quick commands, and the changes of files that are about to be made. Only the journal is synced at a
// start. For up to a minute it is the only record of the start.
//
// Box promises, also across a crash:
//
//   - A command starts at most once per call id, and a change is made at most once.
//   - A command that ran when the service died is reported as lost, never as finished. A change that may
//     or may not have been made is reported as such.
//   - Nothing of a command runs after Cancel.
//   - A caller with an epoch lower than the highest seen changes nothing.
//
// Box knows neither gRPC nor isolation techniques: a Runner isolates commands.
package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// Owners defines which host users own the workspaces.
type Owners struct {
	// Base is the first user and group id; -1 means the service's own.
	Base int
	// Count is the number of users, one for each workspace; zero means that all workspaces share Base.
	Count int
}

// Observer observes commands, for traces and metrics.
type Observer interface {
	// Started is called before a command starts. The returned function is called once, with the command's
	// outcome.
	Started(ctx context.Context, call Call, argv []string) func(Outcome)
}

// Network controls the way out of sandboxes.
type Network interface {
	// Environment returns the variables that make a command use the way out.
	Environment(callID string) []string
	// Follow counts the use of a sandbox's way out for one command that is about to start in the sandbox. A
	// command that is not followed has no network. The context is that of the command's call.
	Follow(ctx context.Context, s Sandbox, callID string) Followed
}

// Followed is a command whose use of the network is followed.
type Followed interface {
	// Enter must be called before the command starts, and again when the sandbox is recreated. out serves
	// the way out of the sandbox.
	Enter(out io.Closer)
	// Uses ends the command's open uses and returns all uses. Nothing of the command may run any more. It
	// may be called by several goroutines.
	Uses() []Use
	// Forget must be called last.
	Forget()
}

// Use is one request or tunnel of a command, or the sum of those refused beyond its maximum number.
type Use struct {
	Host        string    `json:"host,omitempty"` // empty if nothing was requested, or for the sum
	Port        int       `json:"port,omitempty"`
	Rule        string    `json:"rule,omitempty"`
	Outcome     string    `json:"outcome"`
	Credential  string    `json:"credential,omitempty"`
	Message     string    `json:"message,omitempty"` // why the last refused or failed one was
	Connections int64     `json:"connections"`       // how many
	Sent        int64     `json:"sent"`              // bytes to the outside
	Received    int64     `json:"received"`
	Started     time.Time `json:"started,omitzero"` // of the first
	// Duration is their total duration.
	Duration time.Duration `json:"duration"`
}

// Options of a Node.
type Options struct {
	Dir             string
	Name            string // of the node
	Runner          Runner
	Owners          Owners
	Limits          Limits
	MaxExecs        int           // commands that may run at once on the node
	MaxSessionExecs int           // … in one session
	Spares          int           // sandboxes that are kept ready for new sessions
	KeepFinished    int           // results kept per session, acknowledged or not
	KeepFor         time.Duration // how long results, marks and answers are kept
	Observer        Observer
	Network         Network   // nil: no sandbox is given one
	Mounts          Mounts    // nil: there are none
	DiskSpace       DiskSpace // of all disks, to refuse new work; nil: they are not watched
	DataSpace       DiskSpace // of the disk that commands write to; nil: commands are not ended for room
	Quota           Quota     // nil: the size of workspaces is counted, not kept
	// Reclaim removes data that a workspace's snapshots no longer need. The caller has exclusive use of the
	// snapshots. If nil, nothing is removed.
	Reclaim func(*Workspace) error
	// Tidy removes what a crash left in a folder of snapshots, if the folder exists. The folder is not in
	// use. If nil, nothing is removed.
	Tidy func(snapshots string) error
	// Recover determines the fate of a change that a crash interrupted, and its answer if it was done. It
	// may also finish the change. The workspace has not been used since the crash. If nil, the fate is
	// unknown.
	Recover func(*Workspace, Interrupted) ([]byte, Fate)
	// Leftovers tracks files that could not be deleted. If nil, the node keeps its own.
	Leftovers *erase.Later
	// Fault lets tests kill the service at a point of a change. If nil, nothing happens.
	Fault func(c Call, method, point string)
	Log   *slog.Logger
	Now   func() time.Time
}

// Node holds the sessions of one data directory. It is safe for concurrent use.
type Node struct {
	o       Options
	lock    *os.File
	boot    string // tells this start of the machine from others
	journal *journal
	spares  chan *spare
	slots   *slots
	execs   sync.WaitGroup // running commands
	guard   sync.WaitGroup // what keeps the floor of the disk
	quit    chan struct{}  // closed when no command will run any more
	// endGuard closes quit, once.
	endGuard func()
	mu       sync.Mutex // guards what follows
	open     map[Key]*session
	// storages is how much bounded mounts hold, by source.
	storages map[string]*tally
	running  map[*running]struct{} // the commands that run
	guarded  bool                  // a goroutine keeps the floor of the disk
	active   int                   // how many places commands take
	busy     int                   // sessions that have some
	warming  bool                  // a sandbox is being made ahead of its first command
	closed   bool

	cleared time.Time // when room was last made; only Run uses it
}

// Open locks a data directory, and makes it if it does not exist. A directory has one owner at a time.
func Open(o Options) (*Node, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Leftovers == nil {
		o.Leftovers = erase.NewLater(o.Log)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(o.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s is used by another sandbox service: stop it, or choose another directory: %w", o.Dir, err), lock.Close())
	}
	quit := make(chan struct{})
	n := &Node{o: o, lock: lock, boot: durable.Boot(), open: map[Key]*session{}, storages: map[string]*tally{}, running: map[*running]struct{}{}, quit: quit, endGuard: sync.OnceFunc(func() { close(quit) }), slots: newSlots(o.Owners), spares: make(chan *spare, max(o.Spares-1, 0))}
	if err := erase.All(filepath.Join(o.Dir, spareFolder)); err != nil {
		return nil, errors.Join(fmt.Errorf("remove spare sandboxes of an earlier run: %w", err), lock.Close())
	}
	if err := n.clearPassing(); err != nil {
		return nil, errors.Join(fmt.Errorf("remove the leftovers of an earlier start: %w", err), lock.Close())
	}
	if err := n.survey(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := n.recall(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	n.clearLeftovers()
	return n, nil
}

// Run does background cleaning until the context ends.
func (n *Node) Run(ctx context.Context) error {
	if n.o.Spares > 0 {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { n.keepSpares(ctx) })
	}
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			n.tidy()
			n.clearUp(ctx)
		}
	}
}

// Close ends running commands and waits for their end. Results stay on disk.
func (n *Node) Close() error {
	n.mu.Lock()
	n.closed = true
	sessions := make([]*session, 0, len(n.open))
	for _, s := range n.open {
		sessions = append(sessions, s)
	}
	n.mu.Unlock()
	for _, s := range sessions {
		s.tasks.end(ErrClosed)
		for _, e := range s.running() {
			e.stop(Outcome{Reason: Lost, Message: "the sandbox service was stopped while the command ran: it may have taken effect"})
		}
	}
	n.execs.Wait()
	n.endGuard()
	n.guard.Wait()
	return errors.Join(n.journal.settle(), n.journal.close(), n.lock.Close())
}

// at is a point at which a test may kill the service.
func (n *Node) at(c Call, method, point string) {
	if n.o.Fault != nil {
		n.o.Fault(c, method, point)
	}
}

// reserve takes a place for a running command of a session. The last quarter of the places is for sessions
// below their share. The share is an equal part of the places, with one more session counted, and at least
// two. The last half of that quarter is for sessions that have fewer than two places. So a caller that
// begins many sessions with many commands leaves places to others, and no place stays empty while many
// sessions have a few. With fewer than four places, none is kept back.
func (n *Node) reserve(s *session) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	kept, share := n.o.MaxExecs/4, n.share()
	if n.active >= n.o.MaxExecs-kept/2 {
		kept, share = kept/2, 2
	}
	switch {
	case n.active >= n.o.MaxExecs:
		return fmt.Errorf("%w on this node: %d of %d", ErrTooManyExecs, n.active, n.o.MaxExecs)
	case s.places >= share && n.active >= n.o.MaxExecs-kept:
		return fmt.Errorf("%w on this node: %d of %d, and the last %d are for sessions with fewer than %d commands. Wait until commands of this session end, or end some",
			ErrTooManyExecs, n.active, n.o.MaxExecs, kept, share)
	}
	if s.places == 0 {
		n.busy++
	}
	s.places++
	n.active++
	n.execs.Add(1)
	return nil
}

// share returns how many commands each session could run if one more session ran commands. mu is held.
func (n *Node) share() int {
	sessions := n.busy + 1
	return max(2, (n.o.MaxExecs+sessions-1)/sessions)
}

func (n *Node) unreserve(s *session) {
	n.leavePlace(s)
	n.execs.Done()
}

// leavePlace returns a command's place before the command is completely finished.
func (n *Node) leavePlace(s *session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.active--
	if s.places--; s.places == 0 {
		n.busy--
	}
}

// enter returns a session, read from disk if needed, and keeps it in memory until leave is called.
func (n *Node) enter(k Key) (s *session, leave func(), err error) {
	if err := k.check(); err != nil {
		return nil, nil, err
	}
	n.mu.Lock()
	s = n.open[k]
	if s == nil {
		s = newSession(n, k)
		n.open[k] = s
	}
	s.users++
	n.mu.Unlock()
	leave = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		s.users--
		s.idle = n.o.Now()
	}
	if err := s.load(); err != nil {
		leave()
		return nil, nil, err
	}
	return s, leave, nil
}

// tidy drops expired results and evicts idle sessions.
func (n *Node) tidy() {
	n.mu.Lock()
	sessions := make([]*session, 0, len(n.open))
	for _, s := range n.open {
		sessions = append(sessions, s)
	}
	n.mu.Unlock()
	if err := n.journal.settle(); err != nil {
		n.o.Log.Error("cannot record the ends of commands", "error", err)
	}
	n.o.Leftovers.Retry()
	for _, s := range sessions {
		if err := s.mutations.answerLate(); err != nil {
			n.o.Log.Error("an answer is only in the journal", "session", s.key.Session, "error", err)
		}
		s.prune()
		n.evict(s)
	}
}

// evict removes a session from memory after ten idle minutes. The next use reads it from disk again.
func (n *Node) evict(s *session) {
	busy := s.unwritten()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !busy && s.users == 0 && n.o.Now().Sub(s.idle) > 10*time.Minute {
		delete(n.open, s.key)
	}
}
