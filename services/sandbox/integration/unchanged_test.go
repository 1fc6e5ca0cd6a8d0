package integration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// syscalls returns the system calls with a file below dir that this process makes in do.
func syscalls(t *testing.T, dir, calls string, do func()) []string {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil && os.Getenv("CI") == "" {
		t.Skip("strace is not installed")
	}
	out := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-o", out, "-e", "trace="+calls, "-p", strconv.Itoa(os.Getpid()))
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	if !lines.Scan() || !strings.Contains(lines.Text(), "attached") {
		_ = cmd.Wait()
		t.Skipf("strace cannot trace this process: %s", lines.Text())
	}
	do()
	_ = cmd.Process.Signal(unix.SIGINT)
	for lines.Scan() { // it detaches
	}
	_ = cmd.Wait()
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, dir+"/") && !strings.Contains(line, "resumed") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

const (
	syncs = "fsync,fdatasync,syncfs,sync_file_range"
	scans = "getdents64"
)

func TestASnapshotOfAnUnchangedWorkspaceSyncsAndScansNothing(t *testing.T) {
	var data string
	c := open(t, sandbox.LevelBasic, func(cfg *sandbox.Config) { data = cfg.Data })
	workspace := "/one/workspace"
	kept := func() { c.snapshot(t, c.call()) }
	c.bash(t, "mkdir d && echo one > d/f")
	if got := syscalls(t, data, syncs, kept); len(got) < 3 {
		t.Fatalf("a changed workspace is made durable by %q", got)
	}
	if got := syscalls(t, data, syncs+","+scans, func() { kept(); kept() }); strings.Contains(strings.Join(got, "\n"), workspace) {
		t.Errorf("an unchanged workspace is read: %q", got)
	} else if strings.Contains(strings.Join(got, "\n"), "sync(") {
		t.Errorf("an unchanged workspace is synced: %q", got)
	}
	c.bash(t, "cat d/f")
	got := strings.Join(syscalls(t, data, syncs+","+scans, kept), "\n")
	if !strings.Contains(got, workspace+"/d>") {
		t.Errorf("after a command the workspace is not read: %s", got)
	}
	if strings.Contains(got, "sync(") {
		t.Errorf("a command has changed nothing, and the workspace is synced: %s", got)
	}
}

// A snapshot has what changed, however it changed.
func TestASnapshotHasEveryChange(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		var ids, want []string
		keep := func() {
			ids = append(ids, c.snapshot(t, c.call()).GetId(), c.snapshot(t, c.call()).GetId())
			now := c.bash(t, "cat f").out
			want = append(want, now, now)
		}
		put("f", "by a call")(t, c)
		keep()
		c.bash(t, "echo by a command > f")
		keep()
		c.restore(t, ids[0])
		keep()
		for i, id := range ids {
			c.restore(t, id)
			if got := c.bash(t, "cat f").out; got != want[i] {
				t.Errorf("snapshot %d has %q, want %q", i, got, want[i])
			}
		}
	})
}

func TestASnapshotHasWhatARunningCommandWrites(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level)
		put("f", "0")(t, c)
		stream, err := c.execs.Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		writer := &sandboxv1.ExecStart{Call: c.named("writer"), Argv: []string{"bash", "-c", "while :; do echo $((++n)) > new && mv new f; done"}}
		if err := stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: writer}}); err != nil {
			t.Fatal(err)
		}
		number := func() string {
			got, err := c.read(t, "f")
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		var ids []string
		for range 3 {
			before := number()
			for next := before; next == before; {
				next = number()
			}
			ids = append(ids, c.snapshot(t, c.call()).GetId())
		}
		if _, err := c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: c.named("writer")}); err != nil {
			t.Fatal(err)
		}
		was := map[string]bool{}
		for _, id := range ids {
			c.restore(t, id)
			was[number()] = true
		}
		if len(was) != len(ids) {
			t.Errorf("the snapshots have %v", was)
		}
	})
}
