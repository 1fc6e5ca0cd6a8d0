package box

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// tally remembers the size of some folders of one file system between two counts.
type tally struct {
	mu      sync.Mutex
	known   *counted // nil if it must be counted
	rough   bool     // commands may have written since
	reports int      // how often a change was reported
}

// counted is the result of one count.
type counted struct {
	Usage
	at   time.Time
	took time.Duration
	room freeSpace // of the file system, before the count
	cut  bool      // incomplete: it was counted until a limit was exceeded
}

// freeSpace is the free space of a file system. Some do not report how many files fit.
type freeSpace struct{ bytes, inodes int64 }

func roomAt(path string) (r freeSpace, known bool) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil || st.Files == 0 {
		return r, false
	}
	return freeSpace{int64(st.Bfree) * int64(st.Bsize), int64(st.Ffree)}, true //nolint:unconvert // the type is the architecture's
}

func countFolders(l Limits, folders []string) (*counted, error) {
	c := &counted{at: time.Now()}
	c.room, _ = roomAt(folders[0])
	var err error
	c.Usage, err = measure(l, folders...)
	c.took, c.cut = time.Since(c.at), c.over(l) != ""
	return c, err
}

// count counts now. Other goroutines may use the tally meanwhile.
func (t *tally) count(l Limits, folders ...string) (Usage, error) {
	t.mu.Lock()
	told := t.reports
	t.mu.Unlock()
	c, err := countFolders(l, folders)
	if err != nil {
		t.forget()
		return Usage{}, err
	}
	u := c.Usage // once it is kept, other goroutines change it
	t.keep(c, told)
	return u, nil
}

// keep stores a count, unless a change was reported since: the count may or may not include that.
func (t *tally) keep(c *counted, told int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reports != told {
		c = nil
	}
	t.known, t.rough = c, false
}

// get returns the known size, and counts if that is uncertain.
func (t *tally) get(l Limits, folders ...string) (Usage, error) {
	return t.lookUp(l, folders, func() bool { return !t.rough })
}

// near is get for callers that need only an approximate size.
func (t *tally) near(l Limits, folders ...string) (Usage, error) {
	return t.lookUp(l, folders, func() bool { return !t.rough || t.known.stands(l, folders[0]) })
}

func (t *tally) lookUp(l Limits, folders []string, will func() bool) (Usage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || !t.known.conclusive(l) || !will() {
		c, err := countFolders(l, folders)
		if err != nil {
			return Usage{}, err
		}
		t.known, t.rough = c, false
	}
	return t.known.Usage, nil
}

// look returns the size while a command writes, and when it has ended. For a quick command, which ended
// before any count, an earlier count may do.
func (t *tally) look(quick bool, l Limits, folders ...string) (Usage, error) {
	if !quick {
		return t.count(l, folders...)
	}
	t.mu.Lock()
	t.rough = true
	t.mu.Unlock()
	return t.near(l, folders...)
}

// reserve returns which limit a change would exceed, and how. A change that adds nothing exceeds none.
func (t *tally) reserve(l Limits, bytes, inodes int64, folders ...string) (why string, err error) {
	if bytes <= 0 && inodes <= 0 {
		return "", nil
	}
	for _, find := range []func(Limits, ...string) (Usage, error){t.near, t.get} {
		u, err := find(l, folders...)
		if err != nil {
			return "", err
		}
		u.Bytes += bytes
		u.Inodes += inodes
		if why = u.over(l); why == "" {
			return "", nil
		}
	}
	return why, nil
}

// forget forces a new count before the next use.
func (t *tally) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = nil
	t.reports++
}

// last returns the size as last counted, if it is known.
func (t *tally) last() (u Usage, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		return Usage{}, false
	}
	return t.known.Usage, true
}

// add records what a change by the service added.
func (t *tally) add(bytes, inodes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reports++
	if t.known != nil {
		t.known.Bytes += bytes
		t.known.Inodes += inodes
	}
}

// A count stands for the pause between two looks, or for standTimes as long as it took. The file system
// must have lost little room meanwhile: twice the loss must still fit the limits. Most commands write
// nothing and end in less time than a count of some thousand files takes. Writes by others cause an earlier
// count. Deletions by others hide writes for that while. Hard links take no room.
const (
	standTimes = 60
	standsFor  = 10 * time.Second // at most
)

// conclusive reports whether the count is conclusive for the limits: a command's limits may be lower than the
// workspace's.
func (c *counted) conclusive(l Limits) bool { return !c.cut || c.over(l) != "" }

// stands reports whether an earlier count is still good enough.
func (c *counted) stands(l Limits, folder string) bool {
	if time.Since(c.at) > max(watchPause, min(standTimes*c.took, standsFor)) {
		return false
	}
	now, known := roomAt(folder)
	u := c.Usage
	u.Bytes += 2 * max(c.room.bytes-now.bytes, 0)
	u.Inodes += 2 * max(c.room.inodes-now.inodes, 0)
	return known && u.over(l) == ""
}
