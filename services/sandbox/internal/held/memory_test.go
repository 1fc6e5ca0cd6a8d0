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

func TestMemoryIsAProcesssOwnOrShared(t *testing.T) {
	pids := []int{os.Getpid()}
	for _, limit := range []int64{1 << 40, 0} { // as everybody knows it, and as who looks into the process
		own, shared := Memory(directly, pids, limit)
		if own < 64<<10 || own > 1<<30 {
			t.Fatalf("at first %d and %d bytes", own, shared)
		}
		take(t, 64, unix.MAP_PRIVATE)
		own2, shared2 := Memory(directly, pids, limit)
		if !about(own2-own, 64) || !about(shared2-shared, 0) {
			t.Errorf("64 MiB more are %d bytes more, and %d shared ones", own2-own, shared2-shared)
		}
		take(t, 64, unix.MAP_SHARED)
		own3, shared3 := Memory(directly, pids, limit)
		if !about(own3-own2, 0) || !about(shared3-shared2, 64) {
			t.Errorf("64 shared MiB more are %d bytes more, and %d shared ones", own3-own2, shared3-shared2)
		}
	}
}

func TestMemoryOfAProcessWhoseFirstThreadEndedCounts(t *testing.T) {
	pid := actor(t, "end the first thread", undisturbed(t))
	for _, limit := range []int64{1 << 40, 0} {
		if own, _ := Memory(directly, []int{pid}, limit); own < 64<<10 {
			t.Errorf("%d bytes", own)
		}
	}
}

func TestMemoryOfAProcessThatLetsNobodyLookCounts(t *testing.T) {
	pid := actor(t, "hide", undisturbed(t))
	for _, limit := range []int64{1 << 40, 0} {
		if own, _ := Memory(directly, []int{pid}, limit); own < 64<<10 {
			t.Errorf("%d bytes", own)
		}
	}
}

func TestNobodyHasNoMemory(t *testing.T) {
	if own, shared := Memory(directly, []int{1 << 30}, 0); own != 0 || shared != 0 {
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
	if !sameMemory(self, child) || sameMemory(self, other) {
		t.Error("it is not known who has the same")
	}
	all := map[int]inMemory{self: {dir: "/proc/self"}}
	take(t, 64, unix.MAP_PRIVATE)
	alone, _ := shares(all)
	all[child] = inMemory{dir: "/proc/self", parent: self}
	if both, _ := shares(all); !about(both-alone, 0) {
		t.Errorf("%d bytes more", both-alone)
	}
	all[other] = inMemory{dir: "/proc/self", parent: self}
	if three, _ := shares(all); three-alone < 64<<20 {
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
			found := parts(map[int]inMemory{pid: m})
			if own, _ := still(found); !ok || own <= 0 {
				t.Fatalf("%d bytes", own)
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

// The machine may have no more open files for a moment.
func TestCountingMemoryMayFailOnce(t *testing.T) {
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: most.Max}); err != nil {
		t.Fatal(err)
	}
	failed := New(1).CountMemory()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		t.Fatal(err)
	}
	if err := New(1).CountMemory(); failed == nil || err != nil {
		t.Errorf("%v, then %v", failed, err)
	}
}

func TestFilesInMemoryThatAreOpenCount(t *testing.T) {
	c := New(1)
	defer c.Close()
	if err := c.CountMemory(); err != nil {
		t.Fatal(err)
	}
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
	processes := func() Processes { return Processes{Space: ownSpace(), All: []int{os.Getpid()}} }
	c.whole(t, processes, LookTime)
	if n := c.sum().Memory; n < 16<<20 || n > 24<<20 {
		t.Errorf("%d bytes", n)
	}
	for _, fd := range []int{fd, duplicate} {
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
	}
	c.whole(t, processes, LookTime)
	if n := c.sum().Memory; n >= 16<<20 {
		t.Errorf("%d bytes afterwards", n)
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
