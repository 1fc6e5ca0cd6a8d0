package held

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// take is some megabytes of memory, until the test has ended.
func take(t *testing.T, megabytes, flags int) {
	t.Helper()
	b, err := unix.Mmap(-1, 0, megabytes<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|flags)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
}

// about says whether a number of bytes is so many megabytes, or a few more or less.
func about(bytes int64, megabytes int64) bool {
	const few = 12
	return bytes>>20 > megabytes-few && bytes>>20 < megabytes+few
}

// memory is what processes have, as everybody knows it, or as who looks into them.
func memory(exactly bool, pids ...int) (own, shared int64) {
	all := map[int]inMemory{}
	for _, pid := range pids {
		if m, ok := memoryOf("/proc/" + strconv.Itoa(pid)); ok {
			all[pid] = m
		}
	}
	if exactly {
		own, shared, _ = shares(all)
		return own, shared
	}
	return total(all)
}

func TestMemoryIsAProcesssOwnOrShared(t *testing.T) {
	for _, exactly := range []bool{false, true} {
		own, shared := memory(exactly, os.Getpid())
		if own < 64<<10 || own > 1<<30 {
			t.Fatalf("at first %d and %d bytes", own, shared)
		}
		take(t, 64, unix.MAP_PRIVATE)
		own2, shared2 := memory(exactly, os.Getpid())
		if !about(own2-own, 64) || !about(shared2-shared, 0) {
			t.Errorf("64 MiB more are %d bytes more, and %d shared ones", own2-own, shared2-shared)
		}
		take(t, 64, unix.MAP_SHARED)
		own3, shared3 := memory(exactly, os.Getpid())
		if !about(own3-own2, 0) || !about(shared3-shared2, 64) {
			t.Errorf("64 shared MiB more are %d bytes more, and %d shared ones", own3-own2, shared3-shared2)
		}
	}
}

func TestMemoryOfAProcessWhoseFirstThreadEndedCounts(t *testing.T) {
	pid := actor(t, "end the first thread", undisturbed(t))
	for _, exactly := range []bool{false, true} {
		if own, _ := memory(exactly, pid); own < 64<<10 {
			t.Errorf("%d bytes", own)
		}
	}
}

func TestMemoryOfAProcessThatLetsNobodyLookCounts(t *testing.T) {
	pid := actor(t, "hide", undisturbed(t))
	for _, exactly := range []bool{false, true} {
		if own, _ := memory(exactly, pid); own < 64<<10 {
			t.Errorf("%d bytes", own)
		}
	}
}

func TestNobodyHasNoMemory(t *testing.T) {
	if own, shared := memory(true, 1<<30); own != 0 || shared != 0 {
		t.Errorf("%d and %d bytes", own, shared)
	}
}

// A child that has its parent's very memory is here a thread, which the kernel compares like one.
func TestMemoryOfAChildThatHasItsParentsCountsOnce(t *testing.T) {
	self, child := os.Getpid(), 0
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil && tid != self {
			child = tid
		}
	}
	other := actor(t, "stay", undisturbed(t))
	mine := inMemory{dir: "/proc/self"}
	if !sameMemory(self, mine, child, mine) || sameMemory(self, mine, other, inMemory{dir: "/proc/" + strconv.Itoa(other)}) {
		t.Error("it is not known who has the same")
	}
	all := map[int]inMemory{self: {dir: "/proc/self"}}
	take(t, 64, unix.MAP_PRIVATE)
	alone, _, _ := shares(all)
	all[child] = inMemory{dir: "/proc/self", parent: self}
	if both, _, _ := shares(all); !about(both-alone, 0) {
		t.Errorf("%d bytes more", both-alone)
	}
	all[other] = inMemory{dir: "/proc/self", parent: self}
	if three, _, _ := shares(all); three-alone < 64<<20 {
		t.Errorf("a child with memory of its own has %d bytes", three-alone)
	}
}

// Others have all of what they shared with it since, and may have been looked at since.
func TestMemoryCountsNoMoreThatWasLetGoOfInTheLook(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"ended", "read x"},
		{"executed something", "read x; exec sleep 20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", c.script)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Wait() }()
			defer func() { _ = cmd.Process.Kill() }()
			pid := cmd.Process.Pid
			m, ok := memoryOf("/proc/" + strconv.Itoa(pid))
			found, err := parts(map[int]inMemory{pid: m})
			if own, _ := still(found); !ok || err != nil || own <= 0 {
				t.Fatalf("%d bytes, %v", own, err)
			}
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for own := int64(1); own != 0; own, _ = still(found) {
				if ctx.Err() != nil {
					t.Fatalf("%d bytes", own)
				}
			}
		})
	}
}

func TestFilesInMemoryThatAreOpenCount(t *testing.T) {
	mine := map[int]inMemory{1: {dir: "/proc/self"}, 2: {dir: "/proc/self"}} // another one may have the same
	count := func() int64 {
		t.Helper()
		n, err := openInMemory(mine)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, make([]byte, 16<<20)); err != nil {
		t.Fatal(err)
	}
	duplicate, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	if n := count() - before; n != 16<<20 {
		t.Errorf("%d bytes", n)
	}
	for _, fd := range []int{fd, duplicate} {
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
	}
	if n := count() - before; n != 0 {
		t.Errorf("%d bytes afterwards", n)
	}
}

// weigher weighs this process, which may have so many bytes.
func weigher(limit int64, segments ...int64) Weigher {
	processes := func() Processes { return Processes{Space: ownSpace(), All: []int{os.Getpid()}} }
	return Weigher{As: directly, Processes: processes, Limit: limit, Segments: func() int64 {
		now := segments[0]
		if len(segments) > 1 {
			segments = segments[1:]
		}
		return now
	}}
}

// What was there when it began, and is not any more, was let go of.
func TestOnlyWhatIsTooMuchTwiceIsTooMuch(t *testing.T) {
	own, err := weigher(1<<40, 0).Weigh()
	if err != nil || own < 64<<10 {
		t.Fatalf("%d bytes, %v", own, err)
	}
	limit := own + 64<<20
	for name, tc := range map[string]struct {
		segments []int64
		much     bool
	}{
		"segments that are too much":               {[]int64{1 << 30}, true},
		"segments that went":                       {[]int64{1 << 30, 0}, false},
		"segments that went and came back":         {[]int64{1 << 30, 1 << 30, 0}, false},
		"segments that are little":                 {[]int64{1 << 20}, false},
		"segments that went after the second look": {[]int64{1 << 30, 1 << 30, 1 << 30, 1 << 30, 0}, true},
	} {
		if bytes, err := weigher(limit, tc.segments...).Weigh(); err != nil || bytes > limit != tc.much {
			t.Errorf("%s: %d bytes of %d, %v", name, bytes, limit, err)
		}
	}
}

func TestMemoryOfAnotherNamespaceDoesNotCount(t *testing.T) {
	w := weigher(1<<40, 0)
	w.Processes = func() Processes { return Processes{Space: "pid:[1]", All: []int{os.Getpid()}} }
	if bytes, err := w.Weigh(); err != nil || bytes != 0 {
		t.Errorf("%d bytes, %v", bytes, err)
	}
}

// The machine may have no more open files for a moment.
func TestThatMemoryCannotBeLookedAtIsAnError(t *testing.T) {
	again := openNothing(t)
	_, err := weigher(1<<40, 0).Weigh()
	again()
	if err == nil {
		t.Error("it is none")
	}
	if bytes, err := weigher(1<<40, 0).Weigh(); err != nil || bytes == 0 {
		t.Errorf("afterwards: %d bytes, %v", bytes, err)
	}
}

// What was found until then counts a page that several have for each: nobody is to be ended for that.
func TestMemoryThatCannotBeLookedAtIsNotTooMuch(t *testing.T) {
	for look := 1; look <= 4; look++ { // two are what a page is shared by
		for what, hinder := range map[string]func(f func() error) error{
			"may not look":     func(func() error) error { return unix.EPERM },
			"can open nothing": func(f func() error) error { defer openNothing(t)(); return f() },
		} {
			w, looks := weigher(1, 0), 0
			w.As = func(f func() error) error {
				if looks++; looks == look {
					return hinder(f)
				}
				return f()
			}
			if bytes, err := w.Weigh(); err == nil || bytes != 0 {
				t.Errorf("who %s at look %d: %d bytes, %v", what, look, bytes, err)
			}
		}
	}
}

func TestFieldsAreNumbersBehindNames(t *testing.T) {
	path := t.TempDir() + "/status"
	if err := os.WriteFile(path, []byte("Name:\tPPid:\nPPid:\t7\nRssAnon:\t      12 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := fields(path, "RssAnon:", "PPid:")
	if err != nil || len(all) != 2 || all[0] != 12<<10 || all[1] != 7 {
		t.Errorf("%v %v", all, err)
	}
	if all, err := fields(path, "PPid:", "RssShmem:"); err == nil || ended(err) {
		t.Errorf("%v, of which one is not there", all)
	}
	if all, err := fields(path+"2", "PPid:"); !ended(err) {
		t.Errorf("%v of no file", all)
	}
}
