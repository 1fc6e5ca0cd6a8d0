package held

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/plainuser"
)

// acting has this test binary do something on its first thread, and stay until its input ends.
const acting = "FAIRLEAD_TEST_ACTING"

func init() {
	what := os.Getenv(acting)
	if what == "" {
		return
	}
	runtime.LockOSThread() // the first one
	if err := act(what); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func act(what string) error {
	f, err := os.CreateTemp(".", "deleted")
	if err != nil {
		return err
	}
	if _, err := f.Write(make([]byte, 8192)); err != nil {
		return err
	}
	err = errors.Join(f.Sync(), os.Remove(f.Name()))
	switch what {
	case "hide":
		err = errors.Join(err, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	case "map a page":
		_, err2 := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		err = errors.Join(err, err2, f.Close())
	case "wait":
		err = errors.Join(err, exec.CommandContext(context.Background(), "/bin/sh", "-c", "PATH=/bin:/usr/bin; head -c 1000000 /dev/zero > waited; rm waited").Run())
	}
	if err != nil {
		return err
	}
	go func() {
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		runtime.KeepAlive(f)
		os.Exit(0)
	}()
	if what == "end the first thread" {
		_, _, errno := unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
		return errno
	}
	select {}
}

// actor is a process that acts, and holds one small deleted file of the folder that it is in.
func actor(t *testing.T, what, dir string) (pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), acting+"="+what)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if what == "end the first thread" { // another one was ready
		awaitZombie(t, cmd.Process.Pid)
	}
	return cmd.Process.Pid
}

// awaitZombie waits until a process's first thread has ended.
func awaitZombie(t *testing.T, pid int) {
	t.Helper()
	for t.Context().Err() == nil {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(status, []byte("\nState:\tZ")) {
			return
		}
		runtime.Gosched()
	}
}

func counterOf(t *testing.T, dir string) *Counter {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	c := New(uint64(st.Dev)) //nolint:unconvert // the type is the architecture's
	t.Cleanup(c.Close)
	return c
}

func only(pid int) func() Processes {
	return func() Processes { return Processes{Space: ownSpace(), All: []int{pid}} }
}

// The first thread of a process may end, with which go its files, as far as it is concerned: others have
// them still.
func TestWhatAProcessHasOpenWhoseFirstThreadEndedIsFound(t *testing.T) {
	dir := undisturbed(t)
	pid := actor(t, "end the first thread", dir)
	for new(Counter).lives(fmt.Sprintf("/proc/%d", pid)) { // it ends after it has said that it does
		if t.Context().Err() != nil {
			t.Fatal("its first thread does not end")
		}
	}
	if n, _ := counterOf(t, dir).whole(t, only(pid), LookTime); !aFile(n) {
		t.Errorf("%d bytes", n)
	}
}

// Where nobody may look at what is only mapped, a file counts as one that may be larger.
func TestAFileOfAProcessThatMapsAPageOfItIsSureOrNot(t *testing.T) {
	dir := undisturbed(t)
	pid, c := actor(t, "map a page", dir), counterOf(t, dir)
	for range 2 {
		n, _ := c.whole(t, only(pid), LookTime)
		want, bytes := 0, n >= 8192 // all of the file
		if !SeesMapped() {
			want, bytes = 1, n == 4096
		}
		if sum := c.sum(); sum.Unsure != want || !bytes {
			t.Errorf("%+v", sum)
		}
	}
	if c.whole(t, self(0), LookTime); c.sum() != (Sum{}) {
		t.Errorf("when it has ended: %+v", c.sum())
	}
	if c.whole(t, only(pid), LookTime); !SeesMapped() && c.sum().Unsure == 0 {
		t.Error("there is none any more")
	}
	if c.Forget(); c.sum() != (Sum{}) {
		t.Errorf("when it was forgotten: %+v", c.sum())
	}
}

// A mapping that is gone by the time that somebody looks at the file is no file that nobody may see.
// One that has moved it looks the same: nobody can tell without the right to look.
func TestAFileThatIsNotMappedAnyMoreIsSureWhereTheMappingIsSeen(t *testing.T) {
	dir := undisturbed(t)
	pid := actor(t, "stay", dir)
	for sure, want := range map[bool]int{true: 0, false: 1} {
		c := counterOf(t, dir)
		c.sure = sure
		c.begin(only(pid)())
		c.mapped[7] = mapping{dir: fmt.Sprintf("/proc/%d", pid), from: 4096, to: 8192, inode: 7}
		if c.whole(t, only(pid), LookTime); c.sum().Unsure != want {
			t.Errorf("%v: %+v", sure, c.sum())
		}
	}
}

// One that another process has open is as large as it is there.
func TestAFileOfAProcessThatIsOpenElsewhereIsSure(t *testing.T) {
	dir := undisturbed(t)
	f := createDeleted(t, dir)
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	c := counterOf(t, dir)
	c.begin(self(1)())
	c.count(st.Ino, 1<<30)
	c.unsure[st.Ino] = struct{}{}
	if n, _ := c.whole(t, self(1), LookTime); n > 1<<20 || c.sum().Unsure != 0 {
		t.Errorf("%+v", c.sum())
	}
}

// What a process has written counts, and what those have for whom it has waited.
func TestWhatAProcessHasWrittenIsAddedUp(t *testing.T) {
	for what, want := range map[string][2]int64{"stay": {8192, 500_000}, "end the first thread": {8192, 500_000}, "wait": {1_000_000, 2_000_000}} {
		dir := undisturbed(t)
		pid, c := actor(t, what, dir), counterOf(t, dir)
		if c.whole(t, only(pid), LookTime); c.sure && c.sum().Written != 0 {
			t.Errorf("%q: it is looked for in vain: %d bytes", what, c.sum().Written)
		}
		c.sure = false
		if c.whole(t, only(pid), LookTime); c.sum().Written < want[0] || c.sum().Written > want[1] {
			t.Errorf("%q: %d bytes", what, c.sum().Written)
		}
		if c.whole(t, self(0), LookTime); c.sum().Written != 0 {
			t.Errorf("%q, when it has ended: %d bytes", what, c.sum().Written)
		}
	}
}

// One that has ended is its parent's, who waits for it; until then nobody may ask what it has written.
func TestWhatAProcessHasWrittenForWhomNobodyWaitsIsTooMuch(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	for new(Counter).lives(fmt.Sprintf("/proc/%d", cmd.Process.Pid)) {
		if t.Context().Err() != nil {
			t.Fatal("it does not end")
		}
	}
	c := counterOf(t, t.TempDir())
	c.sure = false
	for look, want := range []int64{0, TooMuch, TooMuch} {
		if c.whole(t, only(cmd.Process.Pid), LookTime); c.sum().Written != want {
			t.Errorf("look %d: %+v", look, c.sum())
		}
	}
	_ = cmd.Wait()
	if c.whole(t, only(cmd.Process.Pid), LookTime); c.sum().Written != 0 {
		t.Errorf("afterwards: %+v", c.sum())
	}
}

// There are file systems of which the kernel does not note who writes there.
func TestWhatIsWrittenWhereTheKernelDoesNotNoteItIsTooMuch(t *testing.T) {
	for kind, want := range map[int64]bool{unix.FUSE_SUPER_MAGIC: true, unix.V9FS_MAGIC: true, unix.TMPFS_MAGIC: true, unix.EXT4_SUPER_MAGIC: false, unix.NFS_SUPER_MAGIC: false} {
		if silent(kind) != want {
			t.Errorf("%x", kind)
		}
	}
	c, err := Of(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.sure, c.silent = false, true
	if c.whole(t, self(0), LookTime); c.sum().Written != TooMuch {
		t.Errorf("%+v", c.sum())
	}
}

// Where it cannot be known it may be anything.
func TestWhatAProcessHasWrittenThatLetsNobodyLookIsTooMuch(t *testing.T) {
	plainuser.Need(t)
	dir := undisturbed(t)
	c := counterOf(t, dir)
	if c.whole(t, only(actor(t, "hide", dir)), LookTime); c.sum().Written != TooMuch {
		t.Errorf("%+v", c.sum())
	}
}

// What nobody can look at may hold anything. Each process is so for a moment, while it starts.
func TestAProcessThatLetsNobodyLookHoldsTooMuch(t *testing.T) {
	plainuser.Need(t)
	dir := undisturbed(t)
	hidden, c := only(actor(t, "hide", dir)), counterOf(t, dir)
	for round, want := range []int64{0, 0, TooMuch, TooMuch} {
		if n, _ := c.whole(t, hidden, LookTime); n != want {
			t.Errorf("round %d: %d bytes", round, n)
		}
	}
	if n, _ := c.whole(t, self(0), LookTime); n != 0 {
		t.Errorf("when it has ended: %d bytes", n)
	}
	if n, _ := c.whole(t, hidden, LookTime); n != 0 {
		t.Errorf("when one has begun: %d bytes", n)
	}
}

// Where no file can be opened, nothing is known: neither has anybody ended, nor does anybody hide.
func TestALookThatCanOpenNothingSaysNothingNew(t *testing.T) {
	c := mapDeleted(t, 1)
	first, _ := c.whole(t, self(1), LookTime)
	if !aFile(first) {
		t.Fatalf("%d bytes", first)
	}
	c.hidden, c.sure, c.written = 1, false, 7
	for name, processes := range map[string]func() Processes{
		"a process":  self(1),
		"all":        func() Processes { return Namespace(os.Getpid()) },
		"all beside": Beside,
	} {
		for range 2 * maxHidden {
			n := func() int64 {
				defer openNothing(t)()
				n, _ := c.whole(t, processes, LookTime)
				return n
			}()
			if n != first || c.hidden != 1 || c.written != 7 {
				t.Errorf("%s: %d bytes, not %d, and it was hidden %d times; %d were written", name, n, first, c.hidden, c.written)
			}
		}
	}
	if n, _ := c.whole(t, self(0), LookTime); n != 0 {
		t.Errorf("when it has ended: %d bytes", n)
	}
}

// openNothing keeps this process from opening files, until it may again.
func openNothing(t *testing.T) (again func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWithoutPrivilege runs those tests again to which it matters.
func TestWithoutPrivilege(t *testing.T) {
	dir := plainuser.Folder(t)
	plainuser.Tests(t, dir, nil, "-test.run=AProcess|ATerminal")
}

func TestAThreadLivesUntilItEnds(t *testing.T) {
	c := new(Counter)
	if !c.lives("/proc/self") || !c.lives("/proc/1") || c.lives("/proc/0") || c.blind {
		t.Error("those that live are not told from those that do not")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	if !c.lives(dir) {
		t.Error("one that waits does not live")
	}
	_ = in.Close()
	for c.lives(dir) { // and it stays, until somebody waits for it
		if t.Context().Err() != nil {
			t.Fatal("one that has ended lives")
		}
	}
	_ = cmd.Wait()
}

// What a process has open as its own terminal may be any: each but one counts.
func TestTerminalsThatAreOpenAsOnesOwnCount(t *testing.T) {
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	number, err := unix.IoctlGetInt(int(m.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(int(m.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = end.Close() }()
	for opens, want := range map[string]int{"3</dev/tty": 1, "3</dev/tty 4</dev/tty 5</dev/tty": 3} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec "+opens+" && echo ready && read x")
		cmd.Stdin, cmd.SysProcAttr = end, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		c := counterOf(t, t.TempDir())
		c.whole(t, only(cmd.Process.Pid), LookTime)
		if n := c.found.Terminals; n != want { // the end that it reads from, and others
			t.Errorf("%s: %d, not %d", opens, n, want)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// A program is kept while it runs, whatever becomes of its mappings.
func TestAProgramThatWasDeletedIsFound(t *testing.T) {
	dir := undisturbed(t)
	program := filepath.Join(dir, "deleted-program")
	if out, err := exec.CommandContext(t.Context(), "cp", "/bin/sleep", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "600")
	if err := cmd.Start(); err != nil {
		t.Skip("nothing can be executed there:", err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	c := counterOf(t, dir)
	c.begin(only(cmd.Process.Pid)())
	c.next()
	if c.total < 512 {
		t.Errorf("%d bytes", c.total)
	}
}

func TestATerminalCountsOnceByWhicheverEnd(t *testing.T) {
	dir := undisturbed(t)
	c := counterOf(t, dir)
	terminals := func() int {
		c.whole(t, self(1), LookTime)
		return c.found.Terminals
	}
	before := terminals() // the tests may run on one
	var masters []*os.File
	for range 3 {
		m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close() }()
		masters = append(masters, m)
	}
	again, err := unix.Dup(int(masters[0].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(again) }()
	if n := terminals() - before; n != 3 {
		t.Errorf("%d of 3 masters", n)
	}
	number, err := unix.IoctlGetInt(int(masters[1].Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(int(masters[1].Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := terminals() - before; n != 3 {
		t.Errorf("%d of 3, one of them by both ends", n)
	}
	_ = masters[1].Close() // its number is taken until the other end is closed, too
	if n := terminals() - before; n != 3 {
		t.Errorf("%d of 3, one of them by its other end", n)
	}
	_ = end.Close()
	if n := terminals() - before; n != 2 {
		t.Errorf("%d of 2", n)
	}
}
