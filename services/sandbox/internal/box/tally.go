package box

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
)

// tally remembers what some folders of one file system take between two countings.
type tally struct {
	mu    sync.Mutex
	known *counted // nil when it must be counted
	rough bool     // commands may have written since
	since int64    // bytes that those have which have ended, at most
	told  int      // how often it was told of a change
}

// counted is what folders took once.
type counted struct {
	Usage
	at   time.Time
	took time.Duration
	room room // of the file system, before
	cut  bool // there is more: it was counted until a limit was exceeded
}

// room is what a file system has room for. Some do not say for how many files.
type room struct{ bytes, inodes int64 }

func roomAt(path string) (r room, known bool) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil || st.Files == 0 {
		return r, false
	}
	return room{int64(st.Bfree) * int64(st.Bsize), int64(st.Ffree)}, true //nolint:unconvert // the type is the architecture's
}

func take(l Limits, folders []string) (*counted, error) {
	c := &counted{at: time.Now()}
	c.room, _ = roomAt(folders[0])
	var err error
	c.Usage, err = measure(l, folders...)
	c.took, c.cut = time.Since(c.at), c.over(l) != ""
	return c, err
}

// count counts now. Others may use the tally meanwhile.
func (t *tally) count(l Limits, folders ...string) (Usage, error) {
	t.mu.Lock()
	told := t.told
	t.mu.Unlock()
	c, err := take(l, folders)
	if err != nil {
		t.forget()
		return Usage{}, err
	}
	u := c.Usage // once it is kept, others change it
	t.keep(c, told)
	return u, nil
}

// keep has what was counted be known, unless there was word of a change since: that may have
// been in time to be counted, or not.
func (t *tally) keep(c *counted, told int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told != told {
		c = nil
	}
	t.known, t.rough, t.since = c, false, 0
}

// get returns what is known, and counts when nothing is for certain.
func (t *tally) get(l Limits, folders ...string) (Usage, error) {
	return t.lookUp(l, folders, func() bool { return !t.rough })
}

// near is get for who can do with what is nearly so.
func (t *tally) near(l Limits, folders ...string) (Usage, error) {
	return t.lookUp(l, folders, func() bool { return !t.rough || t.known.stands(l, folders[0]) })
}

func (t *tally) lookUp(l Limits, folders []string, will func() bool) (Usage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || !t.known.tells(l) || !will() {
		c, err := take(l, folders)
		if err != nil {
			return Usage{}, err
		}
		t.known, t.rough, t.since = c, false, 0
	}
	return t.known.Usage, nil
}

// look is what is taken while a command writes, and when it has ended. One that was quick did
// not see anybody count: for it a count of before may do.
func (t *tally) look(quick bool, l Limits, folders ...string) (Usage, error) {
	if !quick {
		return t.count(l, folders...)
	}
	t.mu.Lock()
	t.rough = true
	t.mu.Unlock()
	return t.near(l, folders...)
}

// reserve says which limit a change would exceed, and how. One that adds nothing exceeds none.
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

// forget has it counted before it is used again.
func (t *tally) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = nil
	t.told++
}

// wrote notes what a command has written that has ended.
func (t *tally) wrote(bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = min(t.since+bytes, held.TooMuch)
}

// most is what there can be at most where something was counted, if that was near.
func (t *tally) most(counted int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(counted+t.since, held.TooMuch)
}

// add notes what a change of the service's own added.
func (t *tally) add(bytes, inodes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told++
	if t.known != nil {
		t.known.Bytes += bytes
		t.known.Inodes += inodes
	}
}

// A count stands for as long as a running command is left alone, or for so many times as long
// as it took, if the file system has lost so little room meanwhile that what is counted would be
// within its limits if it had got twice as much: most commands write nothing, and end in less
// time than it takes to count some thousand files. Who else writes has it counted sooner, who
// else deletes hides what was written, for that while. Further names of files take no room.
const (
	standTimes = 60
	standsFor  = 10 * time.Second // at most
)

// tells reports whether the count is conclusive for the limits: a command's limits may be lower than the
// workspace's.
func (c *counted) tells(l Limits) bool { return !c.cut || c.over(l) != "" }

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
