package bubblewrap

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// called is a process that goes by a name, as can be seen: it is not enough that it was
// started.
func called(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Args[0] = name
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
	ours, others, nameless := called(t, "bwrap-ours"), called(t, "bwrap-others"), called(t, "bwrap")
	r := &Runner{name: "bwrap-ours"}
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = ours.Wait()
	if s := ours.ProcessState.Sys().(interface{ Signal() unix.Signal }).Signal(); s != unix.SIGKILL {
		t.Errorf("it ended by signal %v", s)
	}
	for _, cmd := range []*exec.Cmd{others, nameless} {
		if !(&Runner{name: cmd.Args[0]}).named(cmd.Process.Pid) {
			t.Errorf("%s was ended", cmd.Args[0])
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
		t.Error("somebody else's bubblewrap was ended")
	}
}
