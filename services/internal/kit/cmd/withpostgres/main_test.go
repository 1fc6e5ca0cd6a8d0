package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

// The test binary is also the command: with this variable set it is withpostgres.
const roleEnv = "WITHPOSTGRES_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

func command(t *testing.T, url string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, pgtest.Env+"=") {
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(c.Env, roleEnv+"=1")
	if url != "" {
		c.Env = append(c.Env, pgtest.Env+"="+url)
	}
	return c
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		out  string
		code int
	}{
		"the command sees the address":      {[]string{"sh", "-c", "echo $TEST_DATABASE_URL"}, "given\n", 0},
		"the command's code is ours":        {[]string{"sh", "-c", "exit 7"}, "", 7},
		"a signal's number is added to 128": {[]string{"sh", "-c", "kill -9 $$"}, "", 137},
		"a command that is not there":       {[]string{"/nowhere"}, "", 127},
		"no command at all":                 {nil, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, "given", c.args...)
			out, _ := cmd.Output() // The code is checked below.
			if string(out) != c.out || cmd.ProcessState.ExitCode() != c.code {
				t.Errorf("code %d, output %q", cmd.ProcessState.ExitCode(), out)
			}
		})
	}
}

func TestSignalsReachTheCommandOnce(t *testing.T) {
	cmd := command(t, "given", "sh", "-c", `trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.01; done`)
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewScanner(r)
	if !out.Scan() || out.Text() != "ready" {
		t.Fatalf("said %q", out.Text())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !out.Scan() || out.Text() != "got it" {
		t.Errorf("said %q", out.Text())
	}
	_ = cmd.Wait() // The code is checked below.
	if cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("code %d", cmd.ProcessState.ExitCode())
	}
}
