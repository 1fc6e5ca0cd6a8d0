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
	"sync"
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

// Retention limits what is kept of ended commands.
type Retention struct {
	Finished int           // results kept per session, acknowledged or not
	For      time.Duration // how long results, marks and answers are kept
}

// Upkeep is what the node's user does to the data in workspaces that box does not know.
type Upkeep struct {
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
}

// Shown is what sandboxes show besides their workspaces.
type Shown struct {
	Mounts Mounts // nil: there are none
	Trees  Trees  // nil: there are none
}

// Sandboxes describes what the Runner makes.
type Sandboxes struct {
	Spares int // that are kept ready for new sessions
	// Escapes means that processes may outlive the command that started them.
	Escapes bool
}

// Options of a Node.
type Options struct {
	Dir             string
	Name            string // of the node
	Runner          Runner
	Owners          Owners
	Limits          Limits
	MaxExecs        int // commands that may run at once on the node
	MaxSessionExecs int // … in one session
	Sandboxes
	Keep      Retention
	Observer  Observer
	Network   Network   // nil: no sandbox is given one
	Shown               // besides workspaces
	DiskSpace DiskSpace // of all disks, to refuse new work; nil: they are not watched
	DataSpace DiskSpace // of the disk that commands write to; nil: commands are not ended for room
	Quota     Quota     // nil: the size of workspaces is counted, not kept
	Upkeep    Upkeep
	// Leftovers tracks files that could not be deleted. If nil, the node keeps its own.
	Leftovers *erase.Later
	// Fault lets tests kill the service at a point of a change. If nil, nothing happens.
	Fault func(c Call, method, point string)
	Log   *slog.Logger
	Now   func() time.Time
}

// Node holds the sessions of one data directory. It is safe for concurrent use. Each part has its own state and
// lock.
type Node struct {
	o         Options
	dir       *dataDir
	boot      string // tells this start of the machine from others
	journal   *journal
	sessions  *sessions // that are in memory
	capacity  *capacity // for commands
	floor     *floor    // of the disk that commands write to
	slots     *slots    // users of workspaces
	spares    *spares   // sandboxes that are ready for new sessions
	storages  *storages // what limited mounts hold
	reclaimer *reclaimer
}

// Open locks a data directory, and makes it if it does not exist. A directory has one owner at a time.
func Open(o Options) (*Node, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Leftovers == nil {
		o.Leftovers = erase.NewLater(o.Log)
	}
	dir, err := openDataDir(o.Dir, o.Leftovers)
	if err != nil {
		return nil, err
	}
	n := &Node{
		o: o, dir: dir, boot: durable.Boot(), capacity: newCapacity(o.MaxExecs), floor: newFloor(o.DataSpace, o.Log, o.Now),
		slots: newSlots(o.Owners, o.Quota, o.Log), storages: newStorages(),
	}
	n.sessions, n.spares, n.reclaimer = newSessions(n), newSpares(o, n.slots), &reclaimer{node: n}
	if err := n.takeOver(); err != nil {
		return nil, errors.Join(err, dir.close())
	}
	n.clearLeftovers()
	return n, nil
}

// takeOver brings the data of an earlier run into the state in which this run can use them.
func (n *Node) takeOver() error {
	if err := n.spares.clear(); err != nil {
		return fmt.Errorf("remove spare sandboxes of an earlier run: %w", err)
	}
	if err := n.dir.clearPassing(); err != nil {
		return fmt.Errorf("remove the leftovers of an earlier start: %w", err)
	}
	if err := n.survey(); err != nil {
		return err
	}
	return n.recall()
}

// Run does background cleaning until the context ends.
func (n *Node) Run(ctx context.Context) error {
	if n.o.Spares > 0 {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { n.spares.keep(ctx) })
	}
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			n.tidy()
			n.reclaimer.clearUp(ctx)
		}
	}
}

// Close ends running commands and waits for their end. Results stay on disk.
func (n *Node) Close() error {
	n.capacity.close()
	for _, s := range n.sessions.list() {
		s.tasks.end(ErrClosed)
		for _, e := range s.running() {
			e.stop(Outcome{Reason: Lost, Message: "the sandbox service was stopped while the command ran: it may have taken effect"})
		}
	}
	n.capacity.wait()
	n.floor.close()
	return errors.Join(n.journal.settle(), n.journal.close(), n.dir.close())
}

// at is a point at which a test may kill the service.
func (n *Node) at(c Call, method, point string) {
	if n.o.Fault != nil {
		n.o.Fault(c, method, point)
	}
}

// tidy drops expired results and evicts idle sessions.
func (n *Node) tidy() {
	if err := n.journal.settle(); err != nil {
		n.o.Log.Error("cannot record the ends of commands", "error", err)
	}
	n.o.Leftovers.Retry()
	n.keepTrees()
	for _, s := range n.sessions.list() {
		if err := s.mutations.answerLate(); err != nil {
			n.o.Log.Error("an answer is only in the journal", "session", s.key.Session, "error", err)
		}
		s.prune()
		n.sessions.evict(s)
	}
}
