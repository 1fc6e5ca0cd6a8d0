package integration

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
)

// child runs a test of this package in a process of its own until it says that it is ready, and
// returns what kills that. It is killed with the test at the latest.
func child(t *testing.T, test string, environment ...string) (kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), environment...)
	if _, err := cmd.StdinPipe(); err != nil { // which ends with this process, and the child with it
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "READY" {
			return kill
		}
		t.Log(lines.Text())
	}
	t.Fatalf("%s ended before it was ready", test)
	return nil
}
