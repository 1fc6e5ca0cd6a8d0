package held

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mapDeleted maps a deleted file of two pages so many times, so that no two mappings are
// one, and returns what looks at the files of its device.
func mapDeleted(t *testing.T, times int) *Counter {
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
	c := New(deviceOf(t, f))
	t.Cleanup(c.Close)
	return c
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
func self(times int) func() Processes {
	return func() Processes { return Processes{Space: ownSpace(), All: slices.Repeat([]int{os.Getpid()}, times)} }
}

func ownSpace() string { return Beside().Space }

func directly(f func() error) error { return f() }

// whole says how many bytes a whole round finds, in looks of a time, and how many it took.
func (c *Counter) whole(t *testing.T, processes func() Processes, within time.Duration) (bytes int64, looks int) {
	t.Helper()
	for ; ; looks++ {
		c.at = time.Time{} // somebody asks after a while
		bytes = c.Look(directly, processes, within).Deleted
		if n := len(c.seen) + len(c.mapped); n > 1 {
			t.Fatalf("it keeps %d files in mind: %v, %v", n, c.seen, c.mapped)
		}
		if c.seen == nil {
			return bytes, looks + 1
		}
		if t.Context().Err() != nil {
			t.Fatal("it comes to no end")
		}
	}
}

// A file that is mapped many times, by many processes, is one to remember and to count.
func TestAFileThatIsMappedManyTimesIsOne(t *testing.T) {
	c := mapDeleted(t, 20_000)
	for range 2 {
		if n, _ := c.whole(t, self(8), LookTime); !aFile(n) {
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
	c := New(deviceOf(t, f))
	t.Cleanup(c.Close)
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	// At what a process has mapped that there is none of, nobody may look.
	m := mapping{dir: "/proc/0", to: length, inode: st.Ino}
	for _, within := range []time.Duration{0, LookTime} {
		c.begin(self(1)())
		c.mapped[m.inode] = m
		for looks := 0; c.seen != nil; looks++ {
			c.at = time.Time{}
			if n := c.Look(directly, self(1), within).Deleted; n > 1<<20 {
				t.Fatalf("%v: %d bytes after %d looks", within, n, looks)
			}
		}
	}
	c.begin(self(0)())
	c.mapped[m.inode], c.at = m, time.Time{}
	if n := c.Look(directly, self(0), LookTime).Deleted; n != length {
		t.Errorf("mapped only: %d bytes", n)
	}
	c.begin(self(1)())
	c.count(m.inode, length) // it was larger
	if n, _ := c.whole(t, self(1), LookTime); n > 1<<20 {
		t.Errorf("truncated: %d bytes", n)
	}
}

// Who starts the tests may have left them a deleted file.
func TestADeletedFileThatWasInheritedDisturbsNoTest(t *testing.T) {
	f := createDeleted(t, t.TempDir())
	defer func() { _ = f.Close() }()
	c := mapDeleted(t, 1)
	if n, _ := c.whole(t, self(1), LookTime); !aFile(n) {
		t.Errorf("%d bytes", n)
	}
}

// What there is no time for is looked at the next time, and what was found is not forgotten
// meanwhile.
func TestALookThatTakesLongGoesOnInTheNext(t *testing.T) {
	c := mapDeleted(t, 100)
	first, looks := c.whole(t, self(1), 0)
	if first == 0 || looks < 50 { // neighbors in memory may be one mapping
		t.Errorf("%d bytes after %d looks", first, looks)
	}
	for range 10 {
		c.at = time.Time{}
		if n := c.Look(directly, self(1), 0).Deleted; n != first || c.seen == nil {
			t.Errorf("in the midst of the next round: %d bytes", n)
		}
	}
	if n, _ := c.whole(t, self(0), 0); n != first {
		t.Errorf("at its end: %d bytes", n)
	}
	if n, _ := c.whole(t, self(0), 0); n != 0 {
		t.Errorf("without a process: %d bytes", n)
	}
	c.Look(directly, self(1), 0)
	c.Look(directly, self(1), 0)
	c.Close()
	if n := c.Look(directly, self(1), LookTime).Deleted; n != 0 || c.open != nil || c.maps != nil {
		t.Errorf("after its end: %d bytes", n)
	}
}

// Who has more than can be looked at has something to hide.
func TestWhatIsTooMuchToLookAtIsTooMuch(t *testing.T) {
	for name, lower := range map[string]func(*Counter){
		"mappings": func(c *Counter) { c.most = 500 },
		"files":    func(c *Counter) { c.files = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			c := mapDeleted(t, 1000)
			lower(c)
			if n, _ := c.whole(t, self(1), LookTime); n != TooMuch {
				t.Errorf("%d bytes", n)
			}
			c.at, c.most, c.files = time.Time{}, maxHeld, maxFiles
			if n, _ := c.whole(t, self(1), LookTime); !aFile(n) {
				t.Errorf("afterwards: %d bytes", n)
			}
		})
	}
}

// However many ask, a fifth of the time is spent on it.
func TestWhoAsksRightAfterSomebodyElseGetsTheSameAnswer(t *testing.T) {
	c := mapDeleted(t, 1)
	first, _ := c.whole(t, self(1), LookTime)
	c.took = time.Hour
	if n := c.Look(directly, func() Processes { t.Error("it looks again"); return Processes{} }, LookTime).Deleted; n != first {
		t.Errorf("%d bytes, not %d", n, first)
	}
}

// A process that has ended may have left its number to one of another sandbox.
func TestAProcessOfAnotherNamespaceIsNotLookedAt(t *testing.T) {
	c := mapDeleted(t, 10)
	c.Look(directly, self(2), 0)
	c.of.Space = "another one"
	if n, _ := c.whole(t, self(0), LookTime); n > 1<<20 || len(c.rest) > 0 {
		t.Errorf("%d bytes, and %v are left", n, c.rest)
	}
	c.begin(self(1)())
	c.of.Space = "another one"
	if n, _ := c.whole(t, self(0), LookTime); n != 0 {
		t.Errorf("%d bytes", n)
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
