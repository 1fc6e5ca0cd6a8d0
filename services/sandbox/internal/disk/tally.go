package disk

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Tally remembers the size of some folders of one file system between two counts.
type Tally struct {
	mu      sync.Mutex
	known   *counted // nil if it must be counted
	rough   bool     // commands may have written since
	reports int      // how often a change was reported
}

// counted is the result of one count.
type counted struct {
	Size
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

func countFolders(l Room, folders []string) (*counted, error) {
	c := &counted{at: time.Now()}
	c.room, _ = roomAt(folders[0])
	var err error
	c.Size, err = Measure(l, folders...)
	c.took, c.cut = time.Since(c.at), c.Over(l) != ""
	return c, err
}

// Count counts now. Other goroutines may use the Tally meanwhile.
func (t *Tally) Count(l Room, folders ...string) (Size, error) {
	t.mu.Lock()
	told := t.reports
	t.mu.Unlock()
	c, err := countFolders(l, folders)
	if err != nil {
		t.Forget()
		return Size{}, err
	}
	u := c.Size // once it is kept, other goroutines change it
	t.keep(c, told)
	return u, nil
}

// keep stores a count, unless a change was reported since: the count may or may not include that.
func (t *Tally) keep(c *counted, told int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reports != told {
		c = nil
	}
	t.known, t.rough = c, false
}

// Get returns the known size, and counts if that is uncertain.
func (t *Tally) Get(l Room, folders ...string) (Size, error) {
	return t.lookUp(l, folders, func() bool { return !t.rough })
}

// Near is get for callers that need only an approximate size.
func (t *Tally) Near(l Room, folders ...string) (Size, error) {
	return t.lookUp(l, folders, func() bool { return !t.rough || t.known.stands(l, folders[0]) })
}

func (t *Tally) lookUp(l Room, folders []string, will func() bool) (Size, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || !t.known.conclusive(l) || !will() {
		c, err := countFolders(l, folders)
		if err != nil {
			return Size{}, err
		}
		t.known, t.rough = c, false
	}
	return t.known.Size, nil
}

// Look returns the size while a command writes, and when it has ended. For a quick command, which ended
// before any count, an earlier count may do.
func (t *Tally) Look(quick bool, l Room, folders ...string) (Size, error) {
	if !quick {
		return t.Count(l, folders...)
	}
	t.mu.Lock()
	t.rough = true
	t.mu.Unlock()
	return t.Near(l, folders...)
}

// Reserve returns which limit a change would exceed, and how. A change that adds nothing exceeds none.
func (t *Tally) Reserve(l Room, bytes, inodes int64, folders ...string) (why string, err error) {
	if bytes <= 0 && inodes <= 0 {
		return "", nil
	}
	for _, find := range []func(Room, ...string) (Size, error){t.Near, t.Get} {
		u, err := find(l, folders...)
		if err != nil {
			return "", err
		}
		u.Bytes += bytes
		u.Inodes += inodes
		if why = u.Over(l); why == "" {
			return "", nil
		}
	}
	return why, nil
}

// Forget forces a new count before the next use.
func (t *Tally) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = nil
	t.reports++
}

// Last returns the size as last counted, if it is known.
func (t *Tally) Last() (u Size, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		return Size{}, false
	}
	return t.known.Size, true
}

// Add records what a change by the service added.
func (t *Tally) Add(bytes, inodes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reports++
	if t.known != nil {
		t.known.Bytes += bytes
		t.known.Inodes += inodes
	}
}

// LookPause is the shortest time between two counts while a command writes.
const LookPause = 250 * time.Millisecond

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
func (c *counted) conclusive(l Room) bool { return !c.cut || c.Over(l) != "" }

// stands reports whether an earlier count is still good enough.
func (c *counted) stands(l Room, folder string) bool {
	if time.Since(c.at) > max(LookPause, min(standTimes*c.took, standsFor)) {
		return false
	}
	now, known := roomAt(folder)
	u := c.Size
	u.Bytes += 2 * max(c.room.bytes-now.bytes, 0)
	u.Inodes += 2 * max(c.room.inodes-now.inodes, 0)
	return known && u.Over(l) == ""
}
