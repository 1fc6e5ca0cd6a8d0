package warm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

const (
	// lookTime bounds each half of a look at what a sandbox holds: who looks also ends commands whose
	// time is up.
	lookTime = 50 * time.Millisecond
	// maxHeld is how many open files and mappings there may be in a sandbox, of all its processes
	// together. More would take too long to look at: something could be hidden among them.
	maxHeld = 1 << 20
	// maxFiles is how many deleted files may be found there: they are remembered.
	maxFiles = 1 << 16
	// tooMuch is what a sandbox holds that has more: more than any may.
	tooMuch = 1 << 60
)

// Deleted implements box.Process. It looks with the credentials of whom the
// sandbox's namespaces belong to, so that it needs no privilege. What a command
// holds that runs beside this one counts for both.
//
// A file that is only mapped into memory, and not open, counts with its size on the
// disk where the service is root, and otherwise with as much of it as one has mapped.
// One that is under way in a local socket is not seen, nor is any of a sandbox that
// is on another machine.
func (p *process) Deleted() int64 {
	holder := p.sb.holder()
	if holder == 0 {
		return 0
	}
	who := p.sb.spec.Owner
	if p.sb.r.own {
		who = box.Self
	}
	return p.sb.held.look(who, func() []int { return Namespace(holder) }, lookTime)
}

// holder is a process of the namespace whose processes hold the sandbox's files; zero when
// it is not on this machine.
func (s *sandbox) holder() int {
	if s.init != 0 {
		return s.init
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.body.(Holder); ok {
		return h.Holder()
	}
	return 0
}

// held adds up the files of a file system that have no name any more and are in use by
// the processes of a sandbox. It goes round these, and on in the next look where the time for
// one is over. It is safe for concurrent use.
type held struct {
	mu     sync.Mutex
	device uint64
	number string // of the device, as a process's maps have it
	most   int    // open files and mappings
	files  int    // deleted ones
	closed bool

	last int64         // bytes that the last whole round found
	at   time.Time     // when the last look ended
	took time.Duration // and how long it took

	// Of the round. seen is nil when none is under way.
	rest   []string           // processes to look at yet, and threads, by their folders
	space  string             // the process namespace that they are in
	dir    string             // of the one that is being looked at
	open   *os.File           // the folder of what it has open; nil when that was looked at
	maps   *os.File           // what it has mapped; nil when that was looked at
	lines  *bufio.Reader      // of maps
	seen   map[uint64]int64   // bytes that were counted, by inode
	mapped map[uint64]mapping // files in memory that were not counted yet, by inode
	looked int                // at so many
	total  int64              // bytes
}

// init prepares it for the files of a device.
func (h *held) init(device uint64) {
	h.device, h.most, h.files = device, maxHeld, maxFiles
	h.number = fmt.Sprintf("%02x:%02x", unix.Major(device), unix.Minor(device))
}

// look goes on for a time, and says how many bytes are held: as many as the last whole round
// found or, if that is more, as this one did so far. Who comes right after somebody else gets
// the same answer: however many ask, a fifth of the time is spent on it.
func (h *held) look(who box.Owner, processes func() []int, within time.Duration) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || !h.at.IsZero() && time.Since(h.at) < 4*h.took {
		return max(h.last, h.total)
	}
	begin := time.Now()
	_ = As(who, func() error {
		if h.seen == nil {
			h.begin(processes())
		}
		for scan := time.Now(); h.more(); {
			if h.step(); time.Since(scan) >= within {
				break
			}
		}
		return nil
	})
	h.weigh(within)
	switch {
	case h.excess():
		h.last = tooMuch
		h.end()
	case !h.more() && len(h.mapped) == 0:
		h.last = h.total
		h.end()
	}
	h.at, h.took = time.Now(), time.Since(begin)
	return max(h.last, h.total)
}

// begin begins a round.
func (h *held) begin(processes []int) {
	h.seen, h.mapped = map[uint64]int64{}, map[uint64]mapping{}
	for _, pid := range processes {
		h.rest = append(h.rest, "/proc/"+strconv.Itoa(pid))
	}
	if len(h.rest) > 0 {
		h.space, _ = os.Readlink(h.rest[0] + "/ns/pid")
	}
}

// weigh counts for a time what was found in memory. A file whose size is not to be had waits for
// the end of the round: one that is looked at later may have it open.
func (h *held) weigh(within time.Duration) {
	begin := time.Now()
	for inode, m := range h.mapped {
		if bytes, exact := m.size(); exact || !h.more() {
			h.count(inode, bytes)
		}
		if time.Since(begin) >= within {
			return
		}
	}
}

// end ends a round, whole or not.
func (h *held) end() {
	h.endProcess()
	h.rest, h.seen, h.mapped, h.looked, h.total = nil, nil, nil, 0, 0
}

// endProcess ends the look at one process.
func (h *held) endProcess() {
	if h.open != nil {
		_ = h.open.Close()
	}
	if h.maps != nil {
		_ = h.maps.Close()
	}
	h.open, h.maps, h.lines = nil, nil, nil
}

// close gives back what it holds. Nothing is looked at any more.
func (h *held) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end()
	h.last, h.closed = 0, true
}

// forget forgets what was found: whoever held it has ended.
func (h *held) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end()
	h.last, h.at = 0, time.Time{}
}

// count counts a file. Of one that is counted again the later size holds.
func (h *held) count(inode uint64, bytes int64) {
	h.total += bytes - h.seen[inode]
	h.seen[inode] = bytes
	delete(h.mapped, inode)
}

// excess says whether there is more than can be looked at.
func (h *held) excess() bool { return h.looked > h.most || len(h.seen)+len(h.mapped) > h.files }

// more says whether the round is to look at more.
func (h *held) more() bool {
	return !h.excess() && (h.open != nil || h.maps != nil || len(h.rest) > 0)
}

// step looks at a little more.
func (h *held) step() {
	switch {
	case h.open != nil:
		h.someOpen()
	case h.maps != nil:
		h.oneMapped()
	default:
		h.next()
	}
}

// next begins to look at the next process, or thread.
func (h *held) next() {
	h.dir, h.rest = h.rest[0], h.rest[1:]
	h.open, _ = os.Open(h.dir + "/fd")
	if h.maps, _ = os.Open(h.dir + "/maps"); h.maps != nil {
		h.lines = bufio.NewReader(h.maps)
	}
	if space, err := os.Readlink(h.dir + "/ns/pid"); err != nil || space != h.space {
		h.endProcess() // it has ended; another one may have its number
		return
	}
	h.threads()
}

// threads has those of a process looked at that do not have open what their process has.
func (h *held) threads() {
	all, _ := os.ReadDir(h.dir + "/task") // a thread's folder has none
	pid, _ := strconv.Atoi(filepath.Base(h.dir))
	for _, d := range all {
		h.looked++
		if tid, _ := strconv.Atoi(d.Name()); tid != pid && apart(pid, tid) {
			h.rest = append(h.rest, h.dir+"/task/"+d.Name())
		}
	}
}

// apart says whether two threads have files open each of its own. A kernel that does not tell is
// believed to have none that do: with many threads, to look at the files of each would take too long.
func apart(a, b int) bool {
	const files = 2 // KCMP_FILES
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), files, 0, 0, 0)
	return errno == 0 && order != 0
}

// someOpen counts some of what a process has open.
func (h *held) someOpen() {
	names, err := h.open.Readdirnames(64)
	for _, name := range names {
		h.looked++
		var st unix.Stat_t
		if unix.Fstatat(int(h.open.Fd()), name, &st, 0) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 {
			continue
		}
		if uint64(st.Dev) == h.device { //nolint:unconvert // the type is the architecture's
			h.count(st.Ino, st.Blocks*512)
		}
	}
	if err != nil {
		_ = h.open.Close()
		h.open = nil
	}
}

// oneMapped notes one part of a file that a process has mapped, unless the file is known.
func (h *held) oneMapped() {
	raw, length, err := readLine(h.lines)
	h.looked += 1 + length/1024 // long names take time
	if m, ok := parseMapping(raw, h.number); ok {
		if _, known := h.seen[m.inode]; !known && m.length() > h.mapped[m.inode].length() {
			m.dir = h.dir
			h.mapped[m.inode] = m
		}
	}
	if err != nil {
		_ = h.maps.Close()
		h.maps = nil
	}
}

// readLine reads a line of any length: a name in it may be as long as folders are deep. Of one that
// the reader cannot hold it answers the beginning and the end.
func readLine(r *bufio.Reader) (line []byte, length int, err error) {
	const ends = 1024
	line, err = r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, len(line), err
	}
	length = len(line)
	begin, end := bytes.Clone(line[:ends]), []byte(nil)
	for errors.Is(err, bufio.ErrBufferFull) {
		end = append(end, line...)
		end = end[max(len(end)-ends, 0):]
		line, err = r.ReadSlice('\n')
		length += len(line)
	}
	return slices.Concat(begin, end, line), length, err
}

// mapping is a deleted file that is mapped into memory.
type mapping struct {
	dir      string // of the process
	from, to uint64 // the part that is mapped
	inode    uint64
}

func (m mapping) length() int64 { return int64(m.to - m.from) }

// size is the file's on the disk, or else, when that is not to be had, that of the mapping.
func (m mapping) size() (bytes int64, exact bool) {
	var st unix.Stat_t
	// Only root may look there. The kernel names it without leading zeroes.
	if unix.Stat(fmt.Sprintf("%s/map_files/%x-%x", m.dir, m.from, m.to), &st) != nil || st.Ino != m.inode {
		return m.length(), false
	}
	if st.Nlink > 0 {
		return 0, true // what its name says, and not the kernel
	}
	return st.Blocks * 512, true
}

// parseMapping reads a line of a process's maps; ok when it is a deleted file of the
// device, as maps have its number.
func parseMapping(line []byte, device string) (m mapping, ok bool) {
	if !bytes.HasSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte(" (deleted)")) {
		return m, false
	}
	var fields [5]string // addresses, rights, offset, device, inode
	for i := range fields {
		field, rest, _ := bytes.Cut(line, []byte(" "))
		fields[i], line = string(field), rest
	}
	if fields[3] != device {
		return m, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	var err1, err2, err3 error
	m.from, err1 = strconv.ParseUint(from, 16, 64)
	m.to, err2 = strconv.ParseUint(to, 16, 64)
	m.inode, err3 = strconv.ParseUint(fields[4], 10, 64)
	return m, errors.Join(err1, err2, err3) == nil
}

// Namespace is all processes of the process namespace that one is in.
func Namespace(of int) (all []int) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", of))
	if err != nil {
		return nil
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, d := range processes {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if other, err := os.Readlink("/proc/" + d.Name() + "/ns/pid"); err == nil && other == space {
			all = append(all, pid)
		}
	}
	return all
}
