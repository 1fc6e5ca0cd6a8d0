package warm

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// mapDeleted maps a deleted file of two pages so many times, so that no two mappings are
// one, and returns what looks at the files of its device.
func mapDeleted(t *testing.T, times int) *held {
	t.Helper()
	f := createDeleted(t, undisturbed(t))
	defer func() { _ = f.Close() }()
	if _, err := f.Write(make([]byte, 8192)); err != nil {
		t.Fatal(err)
	}
	for i := range times {
		b, err := unix.Mmap(int(f.Fd()), int64(4096*(i%2)), 4096, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(b) })
	}
	h := &held{}
	h.init(deviceOf(t, f))
	t.Cleanup(h.close)
	return h
}

// createDeleted makes a file in a folder that has no name any more.
func createDeleted(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.CreateTemp(dir, "deleted")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	return f
}

func deviceOf(t *testing.T, f *os.File) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return uint64(st.Dev) //nolint:unconvert // the type is the architecture's
}

// undisturbed is a folder on a device of which this process holds no deleted file. Who started it may
// have left it one, such as its output.
func undisturbed(t *testing.T) string {
	t.Helper()
	var taken []uint64
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range names {
		var st unix.Stat_t
		if unix.Stat("/proc/self/fd/"+d.Name(), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 0 {
			taken = append(taken, uint64(st.Dev)) //nolint:unconvert // the type is the architecture's
		}
	}
	for _, dir := range []string{t.TempDir(), "/dev/shm", "."} {
		var st unix.Stat_t
		if unix.Access(dir, unix.W_OK) == nil && unix.Stat(dir, &st) == nil &&
			!slices.Contains(taken, uint64(st.Dev)) { //nolint:unconvert // the type is the architecture's
			return dir
		}
	}
	t.Skip("it was started with deleted files of every device that it may write to")
	return ""
}

// aFile says whether bytes may be those of one small file, as file systems have them.
func aFile(bytes int64) bool { return bytes >= 512 && bytes <= 1<<20 }

// self is this process, as often as it says.
func self(times int) func() []int {
	return func() []int { return slices.Repeat([]int{os.Getpid()}, times) }
}

// whole says how many bytes a whole round finds, in looks of a time, and how many it took.
func (h *held) whole(t *testing.T, processes func() []int, within time.Duration) (bytes int64, looks int) {
	t.Helper()
	for ; ; looks++ {
		h.at = time.Time{} // somebody asks after a while
		bytes = h.look(box.Self, processes, within)
		if n := len(h.seen) + len(h.mapped); n > 1 {
			t.Fatalf("it keeps %d files in mind: %v, %v", n, h.seen, h.mapped)
		}
		if h.seen == nil {
			return bytes, looks + 1
		}
		if t.Context().Err() != nil {
			t.Fatal("it comes to no end")
		}
	}
}

// A file that is mapped many times, by many processes, is one to remember and to count.
func TestAFileThatIsMappedManyTimesIsOne(t *testing.T) {
	h := mapDeleted(t, 20_000)
	for range 2 {
		if n, _ := h.whole(t, self(8), lookTime); !aFile(n) {
			t.Errorf("%d bytes", n)
		}
	}
}

// Where the service may not look at what is mapped itself, a file that somebody else has open is as
// large as it is there, whoever is looked at first.
func TestASparseFileThatIsMappedAndOpenTakesWhatItDoesOnTheDisk(t *testing.T) {
	f := createDeleted(t, undisturbed(t))
	defer func() { _ = f.Close() }()
	const length = 1 << 30
	if err := f.Truncate(length); err != nil {
		t.Fatal(err)
	}
	h := &held{}
	h.init(deviceOf(t, f))
	t.Cleanup(h.close)
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	// At what a process has mapped that there is none of, nobody may look.
	m := mapping{dir: "/proc/0", to: length, inode: st.Ino}
	for _, within := range []time.Duration{0, lookTime} {
		h.begin([]int{os.Getpid()})
		h.mapped[m.inode] = m
		for looks := 0; h.seen != nil; looks++ {
			h.at = time.Time{}
			if n := h.look(box.Self, self(1), within); n > 1<<20 {
				t.Fatalf("%v: %d bytes after %d looks", within, n, looks)
			}
		}
	}
	h.begin(nil)
	h.mapped[m.inode], h.at = m, time.Time{}
	if n := h.look(box.Self, self(0), lookTime); n != length {
		t.Errorf("mapped only: %d bytes", n)
	}
	h.begin([]int{os.Getpid()})
	h.count(m.inode, length) // it was larger
	if n, _ := h.whole(t, self(1), lookTime); n > 1<<20 {
		t.Errorf("truncated: %d bytes", n)
	}
}

// Who starts the tests may have left them a deleted file.
func TestADeletedFileThatWasInheritedDisturbsNoTest(t *testing.T) {
	f := createDeleted(t, t.TempDir())
	defer func() { _ = f.Close() }()
	h := mapDeleted(t, 1)
	if n, _ := h.whole(t, self(1), lookTime); !aFile(n) {
		t.Errorf("%d bytes", n)
	}
}

// What there is no time for is looked at the next time, and what was found is not forgotten
// meanwhile.
func TestALookThatTakesLongGoesOnInTheNext(t *testing.T) {
	h := mapDeleted(t, 100)
	first, looks := h.whole(t, self(1), 0)
	if first == 0 || looks < 100 {
		t.Errorf("%d bytes after %d looks", first, looks)
	}
	for range 10 {
		h.at = time.Time{}
		if n := h.look(box.Self, self(1), 0); n != first || h.seen == nil {
			t.Errorf("in the midst of the next round: %d bytes", n)
		}
	}
	if n, _ := h.whole(t, self(0), 0); n != first {
		t.Errorf("at its end: %d bytes", n)
	}
	if n, _ := h.whole(t, self(0), 0); n != 0 {
		t.Errorf("without a process: %d bytes", n)
	}
	h.look(box.Self, self(1), 0)
	h.look(box.Self, self(1), 0)
	h.close()
	if n := h.look(box.Self, self(1), lookTime); n != 0 || h.open != nil || h.maps != nil {
		t.Errorf("after its end: %d bytes", n)
	}
}

// Who has more than can be looked at has something to hide.
func TestWhatIsTooMuchToLookAtIsTooMuch(t *testing.T) {
	for name, lower := range map[string]func(*held){
		"mappings": func(h *held) { h.most = 500 },
		"files":    func(h *held) { h.files = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			h := mapDeleted(t, 1000)
			lower(h)
			if n, _ := h.whole(t, self(1), lookTime); n != tooMuch {
				t.Errorf("%d bytes", n)
			}
			h.at, h.most, h.files = time.Time{}, maxHeld, maxFiles
			if n, _ := h.whole(t, self(1), lookTime); !aFile(n) {
				t.Errorf("afterwards: %d bytes", n)
			}
		})
	}
}

// However many ask, a fifth of the time is spent on it.
func TestWhoAsksRightAfterSomebodyElseGetsTheSameAnswer(t *testing.T) {
	h := mapDeleted(t, 1)
	first, _ := h.whole(t, self(1), lookTime)
	h.took = time.Hour
	if n := h.look(box.Self, func() []int { t.Error("it looks again"); return nil }, lookTime); n != first {
		t.Errorf("%d bytes, not %d", n, first)
	}
}

// onThread runs f on a thread that is not the process's first one, and ends with f.
func onThread(f func()) {
	runtime.LockOSThread() // never unlocked
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	ended := make(chan struct{})
	go func() { // this thread is taken
		defer close(ended)
		runtime.LockOSThread()
		f()
	}()
	<-ended
	runtime.UnlockOSThread()
}

// A thread may have files open of its own.
func TestWhatAThreadAloneHasOpenIsFound(t *testing.T) {
	if _, _, err := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid()), 2, 0, 0, 0); err != 0 { // KCMP_FILES
		if os.Getenv("CI") != "" && os.Getuid() == 0 {
			t.Fatal("kcmp:", err)
		}
		t.Skip("the kernel does not tell threads' files apart:", err)
	}
	dir := undisturbed(t)
	path := filepath.Join(dir, "deleted"+strconv.Itoa(os.Getpid()))
	f := createDeleted(t, dir)
	h := &held{}
	h.init(deviceOf(t, f))
	t.Cleanup(h.close)
	_ = f.Close()
	opened, done := make(chan error), make(chan struct{})
	go onThread(func() {
		defer close(opened)
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			opened <- err
			return
		}
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			opened <- err
			return
		}
		defer func() { _ = unix.Close(fd) }()
		_, err = unix.Write(fd, make([]byte, 8192))
		opened <- errors.Join(err, unix.Unlink(path))
		<-done
	})
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if n, _ := h.whole(t, self(1), lookTime); !aFile(n) {
		t.Errorf("%d bytes", n)
	}
	close(done)
	if _, more := <-opened; more {
		t.Error("it opened another one")
	}
	if n, _ := h.whole(t, self(1), lookTime); n != 0 {
		t.Errorf("afterwards: %d bytes", n)
	}
}

// A process that has ended may have left its number to one of another sandbox.
func TestAProcessOfAnotherNamespaceIsNotLookedAt(t *testing.T) {
	h := mapDeleted(t, 10)
	h.look(box.Self, self(2), 0)
	h.space = "another one"
	if n, _ := h.whole(t, self(0), lookTime); n > 1<<20 || len(h.rest) > 0 {
		t.Errorf("%d bytes, and %v are left", n, h.rest)
	}
	h.begin([]int{os.Getpid()})
	h.space = "another one"
	if n, _ := h.whole(t, self(0), lookTime); n != 0 {
		t.Errorf("%d bytes", n)
	}
}

// What one command held is nothing to the next.
func TestWhatIsHeldIsForgottenWithTheLastCommand(t *testing.T) {
	sb := newSandbox(&Runner{}, box.Sandbox{})
	first, second := &process{id: 1}, &process{id: 2}
	sb.commands[1], sb.commands[2] = first, second
	sb.held.last, sb.held.at, sb.held.took = tooMuch, time.Now(), time.Hour
	ask := func() int64 { return sb.held.look(box.Self, self(0), lookTime) }
	sb.forget(first)
	if n := ask(); n != tooMuch {
		t.Errorf("%d bytes while another one runs", n)
	}
	sb.forget(second)
	if n := ask(); n != 0 {
		t.Errorf("%d bytes afterwards", n)
	}
}

func TestReadLineTakesALineOfAnyLength(t *testing.T) {
	for _, length := range []int{10, 4094, 4095, 4096, 5000, 100_000} {
		begin, end := "00400000-00401000 rw-s 00000000 fe:01 7   /", " (deleted)\n"
		long := begin + strings.Repeat("x", length) + end
		r := bufio.NewReader(strings.NewReader(long + "next\n"))
		got, n, err := readLine(r)
		if _, ok := parseMapping(got, "fe:01"); !ok || n != len(long) || err != nil {
			t.Errorf("%d: %d bytes, %v: %q", length, n, err, got)
		}
		if len(got) > 8192 {
			t.Errorf("%d: %d bytes are kept", length, len(got))
		}
		if next, _, err := readLine(r); string(next) != "next\n" || err != nil {
			t.Errorf("%d: then %q, %v", length, next, err)
		}
	}
}

func TestParseMapping(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, line string
		want       mapping
		ok         bool
	}{
		{"a deleted file", "7f00aa000000-7f00aa400000 rw-s 00000000 fe:01 1234   /workspace/hidden (deleted)", mapping{from: 0x7f00aa000000, to: 0x7f00aa400000, inode: 1234}, true},
		{"addresses with leading zeroes", "00400000-00401000 rw-s 00000000 fe:01 7   /workspace/a b (deleted)", mapping{from: 0x400000, to: 0x401000, inode: 7}, true},
		{"a file with a name", "7f00aa000000-7f00aa400000 rw-s 00000000 fe:01 1234   /workspace/file", mapping{}, false},
		{"a file of another device", "7f00aa000000-7f00aa400000 rw-s 00000000 00:01 1234   /memfd:x (deleted)", mapping{}, false},
		{"memory", "7f00aa000000-7f00aa400000 rw-p 00000000 00:00 0", mapping{}, false},
		{"nonsense", "x y z fe:01 q (deleted)", mapping{}, false},
	} {
		if got, ok := parseMapping([]byte(tc.line+"\n"), "fe:01"); ok != tc.ok || got != tc.want {
			t.Errorf("%s: %+v, %v", tc.name, got, ok)
		}
	}
}
