// Package held counts what the processes of a sandbox hold and a count of its folders misses: deleted files
// and terminals.
//
// Init uses it too, if the sandbox's processes are not on the service's machine.
package held

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// LookTime limits each half of a look: the caller also enforces time limits.
	LookTime = 50 * time.Millisecond
	// TooMuch stands for a sandbox that holds too much, or that cannot be inspected completely: more bytes
	// than any limit.
	TooMuch = 1 << 60

	// maxHeld is how many open files and mappings the processes of a sandbox may have together. More would
	// take too long to inspect, and could hide something.
	maxHeld = 1 << 20
	// maxFiles is how many deleted files and terminals are remembered.
	maxFiles = 1 << 16
	// maxHidden is in how many consecutive rounds a process may be uninspectable. Processes that init
	// starts are so until they are known.
	maxHidden = 2
	// maxLists is how often processes are listed in a round: again at its end, for new ones. A build makes
	// new ones without end.
	maxLists = 4
)

// Processes are the processes of a sandbox.
type Processes struct {
	Space string // their process namespace, as links of /proc say it
	All   []int
	// First are the processes that init has started, which cannot be inspected until they execute their
	// program. Starting is the number of further such processes whose pid is unknown.
	First    []int
	Starting int
	// Unknown means that there may be others: not all could be listed.
	Unknown bool
}

// Sum is what processes hold.
type Sum struct {
	Deleted   int64 // bytes of deleted files
	Terminals int   // pseudo-terminals, by either end
	// Unsure is the number of deleted files that are only mapped and may not be inspected. Deleted counts
	// what is mapped of them; they may be larger.
	Unsure int
	// Written is the number of bytes written to disks by live processes and their reaped children. It is
	// not measured where no file can be Unsure.
	Written int64
}

// Counter counts the deleted files of a file system that the processes of a sandbox use, and the sandbox's
// terminals. It goes round the processes and continues in the next look when the time is over. It is safe
// for concurrent use.
//
// It assumes that all threads of a process share their open files and their folder, which the sandbox
// filter ensures. A file that is only mapped counts with its size on disk if the service is root. Otherwise
// its mapped part counts, and the file is Unsure. The counter misses files in transit in a local socket,
// and one terminal per process that is open as its controlling terminal. A process that is uninspectable
// for three rounds counts as holding too much.
type Counter struct {
	mu     sync.Mutex
	device uint64
	number string // of the device, as in a process's maps
	most   int    // open files and mappings
	files  int    // deleted ones, and terminals
	closed bool
	sure   bool // it may inspect files that are only mapped
	silent bool // the kernel does not count writes to the device

	written  int64            // result of the last look
	unwaited map[int]struct{} // processes that had ended but were not reaped then

	found  Sum           // result of the last full round
	hidden int           // consecutive rounds until then in which a process was hidden
	at     time.Time     // when the last look ended
	took   time.Duration // and how long it took

	// Of the round. seen is nil if none is in progress.
	rest      []string            // processes that are still to be inspected, by their folders
	lists     int                 // how often they were listed
	listed    map[int]struct{}    // all that were listed
	of        Processes           // as listed last
	process   string              // the one being inspected; empty: none
	dir       string              // and its thread
	open      *os.File            // the folder of its open files; nil when done
	maps      *os.File            // its mappings; nil when done
	lines     *bufio.Reader       // of maps
	seen      map[uint64]int64    // counted bytes, by inode
	mapped    map[uint64]mapping  // mapped files that are not counted yet, by inode
	unsure    map[uint64]struct{} // files counted by their mapped part, because they may not be inspected, by inode
	terminals map[uint32]struct{} // by number
	others    int                 // terminals of unknown number
	owns      bool                // the process has its controlling terminal open
	looked    int                 // number of inspected files and mappings
	hides     bool                // one of the processes cannot be inspected
	blind     bool                // a look failed for a reason outside the processes
	total     int64               // bytes
}

// New makes a Counter for the deleted files of a device. The caller must call Close.
func New(device uint64) *Counter {
	return &Counter{
		device: device, most: maxHeld, files: maxFiles, sure: SeesMapped(),
		number: fmt.Sprintf("%02x:%02x", unix.Major(device), unix.Minor(device)),
	}
}

// Of makes a Counter for the file system of a folder.
func Of(folder string) (*Counter, error) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Stat(folder, &st), unix.Statfs(folder, &fs)); err != nil {
		return nil, err
	}
	c := New(uint64(st.Dev))          //nolint:unconvert // the type is the architecture's
	c.silent = silent(int64(fs.Type)) //nolint:unconvert // likewise
	return c, nil
}

// Sure reports whether it may inspect all files, so that Unsure is always zero.
func (c *Counter) Sure() bool { return c.sure }

// Look measures for the time within and returns what is held: the result of the last full round or, if that
// is more, of this round so far. Calls soon after another return the same result, so at most a fifth of the
// time is spent on looking. It inspects processes through as, which has the rights to do so. It calls
// processes at the beginning and the end of a round, not through as.
func (c *Counter) Look(as func(func() error) error, processes func() Processes, within time.Duration) Sum {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !c.at.IsZero() && time.Since(c.at) < 4*c.took {
		return c.sum()
	}
	begin := time.Now()
	if c.seen == nil {
		c.begin(processes())
	}
	for whole := true; whole; {
		whole = c.scan(as, within) && c.again(processes) && time.Since(begin) < within
	}
	if !c.sure {
		c.written = c.addWritten(as)
	}
	switch {
	case c.excess():
		c.found.Deleted = TooMuch
		c.end()
	case !c.more() && len(c.mapped) == 0 && c.lists == maxLists:
		c.conclude()
	}
	c.at, c.took = time.Now(), time.Since(begin)
	return c.sum()
}

// scan goes on for a time and reports whether it has inspected everything listed.
func (c *Counter) scan(as func(func() error) error, within time.Duration) bool {
	_ = as(func() error {
		for begin := time.Now(); c.more(); {
			if c.step(); time.Since(begin) >= within {
				break
			}
		}
		return nil
	})
	c.weigh(within)
	return !c.excess() && !c.more() && len(c.mapped) == 0
}

// again lists the processes once more and reports whether it found some that were not listed in this round.
func (c *Counter) again(processes func() Processes) bool {
	if c.lists < maxLists && c.list(processes()) {
		return true
	}
	c.lists = maxLists
	return false
}

// list adds the processes that were not listed before and reports whether there are any.
func (c *Counter) list(p Processes) (some bool) {
	c.of = p
	c.lists++
	c.blind = c.blind || p.Unknown
	for _, pid := range p.All {
		if _, known := c.listed[pid]; !known {
			c.listed[pid] = struct{}{}
			c.rest = append(c.rest, "/proc/"+strconv.Itoa(pid))
			some = true
		}
	}
	return some
}

// sum returns the current result.
func (c *Counter) sum() Sum {
	now := c.now()
	return Sum{
		Deleted: max(c.found.Deleted, now.Deleted), Terminals: max(c.found.Terminals, now.Terminals),
		Unsure: max(c.found.Unsure, now.Unsure), Written: c.written,
	}
}

// now returns the result of this round so far.
func (c *Counter) now() Sum {
	return Sum{Deleted: c.total, Terminals: len(c.terminals) + c.others, Unsure: len(c.unsure)}
}

// conclude ends a full round. An incomplete inspection never lowers the result of the round before.
func (c *Counter) conclude() {
	if c.blind {
		c.found = c.sum()
		c.end()
		return
	}
	c.found = c.now()
	c.hidden++
	if !c.hides {
		c.hidden = 0
	}
	if c.hidden > maxHidden {
		c.found.Deleted = TooMuch
	}
	c.end()
}

// Close releases the counter's files. It must not be used afterwards.
func (c *Counter) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	c.found, c.written, c.unwaited, c.closed = Sum{}, 0, nil, true
}

// Forget discards the results: the processes that held the files have ended.
func (c *Counter) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	c.found, c.written, c.unwaited, c.hidden, c.at = Sum{}, 0, nil, 0, time.Time{}
}

// begin begins a round.
func (c *Counter) begin(p Processes) {
	c.seen, c.mapped, c.unsure = map[uint64]int64{}, map[uint64]mapping{}, map[uint64]struct{}{}
	c.terminals, c.listed = map[uint32]struct{}{}, map[int]struct{}{}
	c.list(p)
}

// end ends a round, full or not.
func (c *Counter) end() {
	c.endProcess()
	c.rest, c.process, c.seen, c.mapped, c.unsure, c.terminals, c.listed, c.of = nil, "", nil, nil, nil, nil, nil, Processes{}
	c.lists, c.others, c.looked, c.hides, c.blind, c.total = 0, 0, 0, false, false, 0
}

// endProcess ends the inspection of one process.
func (c *Counter) endProcess() {
	if c.open != nil {
		_ = c.open.Close()
	}
	if c.maps != nil {
		_ = c.maps.Close()
	}
	c.open, c.maps, c.lines = nil, nil, nil
}

// count counts a file. If a file is counted again, the later size holds.
func (c *Counter) count(inode uint64, bytes int64) {
	c.total += bytes - c.seen[inode]
	c.seen[inode] = bytes
	delete(c.mapped, inode)
	delete(c.unsure, inode)
}

// weigh counts mapped files for a time. A file of unknown size waits for the end of the round: a process
// inspected later may have it open.
func (c *Counter) weigh(within time.Duration) {
	begin := time.Now()
	for inode, m := range c.mapped {
		if bytes, err := m.size(); err == nil || !c.more() {
			c.count(inode, bytes)
			// A missing file may have been moved meanwhile.
			if errors.Is(err, os.ErrPermission) || err != nil && !c.sure && c.lives(m.dir) {
				c.unsure[inode] = struct{}{}
			}
		}
		if time.Since(begin) >= within {
			return
		}
	}
}

// excess reports whether there is more than can be inspected.
func (c *Counter) excess() bool {
	return c.looked > c.most || len(c.seen)+len(c.mapped)+len(c.terminals) > c.files
}

// more reports whether the round has more to inspect.
func (c *Counter) more() bool {
	return !c.excess() && (c.process != "" || len(c.rest) > 0)
}
