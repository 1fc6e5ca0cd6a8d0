package sandbox_test

import (
	"strings"
	"testing"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
)

// small are limits that tests reach quickly.
func small(c *sandbox.Config) {
	c.Limits.Memory, c.Limits.Processes = 256<<20, 40
	c.Limits.FileSize, c.Limits.Output, c.Limits.Flood = 8<<20, 64<<10, 8<<20
	c.Limits.WorkspaceBytes, c.Limits.WorkspaceInodes = 16<<20, 500
	c.Limits.Timeout, c.Limits.MaxTimeout = 20*time.Second, 30*time.Second
}

func TestLimitsHaveTheirReasons(t *testing.T) {
	eachLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small)
		for _, tc := range []struct {
			name, script string
			timeout      float64
			want         sandboxv1.ExitReason
			signal       int32
		}{
			{"a command that exits", "exit 3", 0, sandboxv1.ExitReason_EXIT_REASON_EXITED, 0},
			{"a command that kills itself", "kill -9 $$", 0, sandboxv1.ExitReason_EXIT_REASON_SIGNALED, 9},
			{"a file above the size limit", "exec head -c 9000000 /dev/zero > big", 0, sandboxv1.ExitReason_EXIT_REASON_SIGNALED, 25},
			{"time that runs out for one who ignores it", "trap '' TERM INT HUP; while :; do :; done", 0.5, sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT, 0},
			{"time that runs out for one who is stopped", "kill -STOP $$", 0.5, sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT, 0},
			{"an output flood", "yes", 0, sandboxv1.ExitReason_EXIT_REASON_OUTPUT_LIMIT, 0},
			{"a disk filler", "rm -f big; for i in $(seq 100); do head -c 4000000 /dev/urandom > f$i; done; sleep 20", 0, sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT, 0},
			{"room is made again", "rm -f f* big", 0, sandboxv1.ExitReason_EXIT_REASON_EXITED, 0},
			{"a disk filler that deletes its files", "for i in $(seq 12); do exec {fd}>f; rm f; head -c 4000000 /dev/urandom >&$fd; done; sleep 20", 0, sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT, 0},
			{"a maker of many files", "mkdir many; cd many; for i in $(seq 1000); do : > $i; done; sleep 20", 0, sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT, 0},
			{"room is made again", "rm -rf many", 0, sandboxv1.ExitReason_EXIT_REASON_EXITED, 0},
			{"a full home directory", "head -c 8000000 /dev/urandom > ~/a; cp ~/a ~/b; cp ~/a ~/c; sleep 20", 0, sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT, 0},
			{"room is made again", "rm -rf ~/*", 0, sandboxv1.ExitReason_EXIT_REASON_EXITED, 0},
		} {
			r, err := c.exec(t.Context(), tc.script, func(s *sandboxv1.ExecStart) {
				if tc.timeout > 0 {
					s.Timeout = seconds(tc.timeout)
				}
			})
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if r.GetReason() != tc.want || r.GetSignal() != tc.signal {
				t.Errorf("%s: %v, output %q", tc.name, r.ExecExited, r.err)
			}
			if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED && r.GetMessage() == "" {
				t.Errorf("%s: no message", tc.name)
			}
		}
	})
}

func TestAMemoryHogIsEnded(t *testing.T) {
	const hog = `exec python3 -c "x = bytearray(900 << 20)"`
	eachLevel(t, func(t *testing.T, level string) {
		r := open(t, level, small).bash(t, hog)
		switch level {
		case sandbox.LevelFull:
			if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_OUT_OF_MEMORY || r.GetMaxMemoryBytes() == 0 {
				t.Errorf("%v", r.ExecExited)
			}
		default:
			if r.GetExitCode() == 0 || !strings.Contains(r.err, "MemoryError") {
				t.Errorf("%v, %q", r.ExecExited, r.err)
			}
		}
	})
}

func TestAForkBombIsBounded(t *testing.T) {
	eachLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small)
		r, err := c.exec(t.Context(), "b() { b | b & }; b; for i in $(seq 100); do sleep 9 & done; sleep 9", func(s *sandboxv1.ExecStart) { s.Timeout = seconds(2) })
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.err, "fork") {
			t.Errorf("no fork was refused: %v, %q", r.ExecExited, r.err)
		}
		if r := c.bash(t, "echo still here"); r.out != "still here\n" {
			t.Errorf("afterwards: %v %q", r.ExecExited, r.err)
		}
	})
}

func TestCPUTimeIsShared(t *testing.T) {
	eachLevel(t, func(t *testing.T, level string) {
		if level != sandbox.LevelFull {
			t.Skip("only control groups share the processors")
		}
		c := open(t, level, func(c *sandbox.Config) { c.Limits.CPUs = 0.2 })
		r, err := c.exec(t.Context(), "while :; do :; done & while :; do :; done", func(s *sandboxv1.ExecStart) { s.Timeout = seconds(2) })
		if err != nil {
			t.Fatal(err)
		}
		if used := r.GetCpuTime().AsDuration(); used < 50*time.Millisecond || used > 800*time.Millisecond {
			t.Errorf("used %v of a fifth of two seconds", used)
		}
	})
}

func TestOutputAboveTheLimitIsDroppedAndTold(t *testing.T) {
	eachLevel(t, func(t *testing.T, level string) {
		r := open(t, level, small).bash(t, "head -c 200000 /dev/zero | tr '\\0' x; echo end >&2; exit 4")
		if !r.GetOutputTruncated() || len(r.out)+len(r.err) != 64<<10 || r.GetExitCode() != 4 {
			t.Errorf("%v with %d bytes", r.ExecExited, len(r.out))
		}
	})
}

func TestLimitsMayOnlyBeLowered(t *testing.T) {
	c := open(t, sandbox.LevelBasic, small)
	for name, change := range map[string]func(*sandboxv1.ExecStart){
		"memory":    func(s *sandboxv1.ExecStart) { s.Limits = &sandboxv1.ExecLimits{MemoryBytes: 1 << 40} },
		"processes": func(s *sandboxv1.ExecStart) { s.Limits = &sandboxv1.ExecLimits{Processes: 1 << 20} },
		"output":    func(s *sandboxv1.ExecStart) { s.Limits = &sandboxv1.ExecLimits{OutputBytes: 1 << 40} },
		"time":      func(s *sandboxv1.ExecStart) { s.Timeout = seconds(3600) },
	} {
		_, err := c.exec(t.Context(), "true", change)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		wantReason(t, err, "LIMIT_ABOVE_CEILING")
	}
	r, err := c.exec(t.Context(), "echo 123456", func(s *sandboxv1.ExecStart) { s.Limits = &sandboxv1.ExecLimits{OutputBytes: 3} })
	if err != nil || r.out != "123" || !r.GetOutputTruncated() {
		t.Errorf("%q %v %v", r.out, r.ExecExited, err)
	}
}

func TestCommandsAboveTheNumberAreRefused(t *testing.T) {
	c := open(t, sandbox.LevelBasic, func(c *sandbox.Config) { c.Limits.SessionExecs = 1 })
	stream, err := c.execs.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ref := c.call()
	s := &sandboxv1.ExecStart{Call: ref, Argv: []string{"sleep", "60"}}
	if err := stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: s}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	_, err = c.exec(t.Context(), "true", nil)
	wantReason(t, err, "TOO_MANY_EXECS")
	if _, err := c.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: ref}); err != nil {
		t.Fatal(err)
	}
	if r := c.bash(t, "echo again"); r.out != "again\n" {
		t.Errorf("%v", r.ExecExited)
	}
}
