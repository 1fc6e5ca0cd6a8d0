package bubblewrap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// called is a process that goes by a name and was given words, as can be seen: it is not
// enough that it was started.
func called(t *testing.T, name string, words ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Args, cmd.Dir = append([]string{name}, words...), t.TempDir()
	for _, w := range words {
		if err := os.Symlink("/dev/stdin", filepath.Join(cmd.Dir, w)); err != nil {
			t.Fatal(err)
		}
	}
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
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := in.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestLeftoversOfTheSameNameAreEnded(t *testing.T) {
	ours := []*exec.Cmd{called(t, "bwrap-ours"), called(t, "/proc/self/fd/9", initName("bwrap-ours"))}
	others := []*exec.Cmd{called(t, "bwrap-others"), called(t, "bwrap"), called(t, "/proc/self/fd/9", initName("bwrap-others"))}
	r := &Runner{name: "bwrap-ours"}
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range ours {
		_ = cmd.Wait()
		if s := cmd.ProcessState.Sys().(interface{ Signal() unix.Signal }).Signal(); s != unix.SIGKILL {
			t.Errorf("%v ended by signal %v", cmd.Args, s)
		}
	}
	for _, cmd := range others {
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid)); err != nil || len(raw) == 0 {
			t.Errorf("%v was ended", cmd.Args)
		}
	}
	if err := r.Sweep(t.Context()); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestARunnerWithoutANameSweepsNothing(t *testing.T) {
	cmd := called(t, plainName)
	r := &Runner{name: plainName}
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !r.named(cmd.Process.Pid) {
		t.Error("another user's bubblewrap was ended")
	}
}
