package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/sandbox"
)

// small are limits that tests reach quickly.
func small(c *sandbox.Config) {
	c.Limits.Memory, c.Limits.Processes = 256<<20, 40
	c.Limits.FileSize, c.Limits.Output, c.Limits.Flood = 8<<20, 64<<10, 8<<20
	c.Limits.WorkspaceBytes, c.Limits.WorkspaceInodes = 16<<20, 500
	c.Limits.Timeout, c.Limits.MaxTimeout = 20*time.Second, 30*time.Second
}

// bystander is a further session of the same service, in which a command runs that
// looks at the clock, and another one must answer at any time.
func (c *client) bystander(t *testing.T) func() {
	t.Helper()
	n := *c
	n.session = "sessions/bystander"
	n.ensure(t.Context(), t)
	n.bash(t, "echo mine > file")
	return func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := n.exec(ctx, "cat file; : > /tmp/x && echo written; (exit 0) && echo forked", nil)
		if err != nil || r.out != "mine\nwritten\nforked\n" || len(r.GetLimitsHit()) > 0 {
			t.Errorf("the bystander: %v %q %q %v", r.ExecExited, r.out, r.err, err)
		}
	}
}

func (r result) hits() string {
	var all []string
	for _, h := range r.GetLimitsHit() {
		all = append(all, h.GetLimit())
	}
	return strings.Join(all, " ")
}

func TestLimitsHaveTheirReasons(t *testing.T) {
	t.Parallel()
	const (
		exits    = sandboxv1.ExitReason_EXIT_REASON_EXITED
		signals  = sandboxv1.ExitReason_EXIT_REASON_SIGNALED
		tooLong  = sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT
		tooLarge = sandboxv1.ExitReason_EXIT_REASON_FILE_LIMIT
		flooded  = sandboxv1.ExitReason_EXIT_REASON_OUTPUT_LIMIT
		full     = sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT
	)
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small)
		answers := c.bystander(t)
		for _, tc := range []struct {
			name, script string
			timeout      float64
			want         sandboxv1.ExitReason
			signal       int32
			hits         string
		}{
			{"a command that exits", "exit 3", 0, exits, 0, ""},
			{"a command that kills itself", "kill -9 $$", 0, signals, 9, ""},
			{"a file above the size limit", "exec head -c 9000000 /dev/zero > big", 0, tooLarge, 25, "file-size"},
			{"a file above the size limit, told by a shell", "head -c 9000000 /dev/zero > big; exit $?", 0, exits, 0, "file-size"},
			{"a file above the size limit, refused", `exec python3 -c "open('big', 'wb').write(bytes(9000000))"`, 0, exits, 0, ""},
			{"room is made", "rm big", 0, exits, 0, ""},
			{"more open files than there may be", `exec python3 -c "x = [open('/dev/null') for i in range(100000)]"`, 0, exits, 0, ""},
			{"time that runs out for one who ignores it", "trap '' TERM INT HUP; while :; do :; done", 0.5, tooLong, 0, "timeout"},
			{"time that runs out for one who is stopped", "kill -STOP $$", 0.5, tooLong, 0, "timeout"},
			{"more output than is kept", "head -c 200000 /dev/zero", 0, exits, 0, "output"},
			{"an output flood", "yes", 0, flooded, 0, "flood output"},
			{"a full /tmp", "head -c 9000000 /dev/zero > /tmp/big; s=$?; rm /tmp/big; exit $s", 0, exits, 0, ""},
			{"a disk filler", "rm -f big; for i in $(seq 100); do head -c 4000000 /dev/urandom > f$i; done; sleep 20", 0, full, 0, "workspace-bytes"},
			{"room is made again", "rm -f f* big", 0, exits, 0, ""},
			{"a maker of many files", "mkdir many; cd many; for i in $(seq 1000); do : > $i; done; sleep 20", 0, full, 0, "workspace-inodes"},
			{"room is made again", "rm -rf many", 0, exits, 0, ""},
			{"a full home directory", "head -c 8000000 /dev/urandom > ~/a; cp ~/a ~/b; cp ~/a ~/c; sleep 20", 0, full, 0, "workspace-bytes"},
			{"room is made again", "rm -rf ~/*", 0, exits, 0, ""},
		} {
			r, err := c.exec(t.Context(), tc.script, func(s *sandboxv1.ExecStart) {
				if tc.timeout > 0 {
					s.Timeout = seconds(tc.timeout)
				}
			})
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if r.GetReason() != tc.want || r.GetSignal() != tc.signal || r.hits() != tc.hits {
				t.Errorf("%s: %v, output %.300q", tc.name, r.ExecExited, r.err)
			}
			if r.GetReason() != exits && r.GetMessage() == "" {
				t.Errorf("%s: no message", tc.name)
			}
			answers()
		}
	})
}

func TestAMemoryHogIsEnded(t *testing.T) {
	t.Parallel()
	const hog = `exec python3 -c "x = bytearray(900 << 20)"`
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small)
		answers := c.bystander(t)
		r := c.bash(t, hog)
		switch level {
		case sandbox.LevelFull:
			if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_OUT_OF_MEMORY || r.GetMaxMemoryBytes() == 0 || r.hits() != "memory" {
				t.Errorf("%v", r.ExecExited)
			}
			// One who survives the end of a child is told, too.
			if r := c.bash(t, `python3 -c "x = bytearray(900 << 20)"; echo on; exit 0`); r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED || r.hits() != "memory" {
				t.Errorf("%v", r.ExecExited)
			}
			if r := c.bash(t, `python3 -c "x = bytearray(900 << 20)"; exit 3`); r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED || r.GetExitCode() != 3 || r.hits() != "memory" {
				t.Errorf("%v", r.ExecExited)
			}
		default:
			if r.GetExitCode() == 0 || !strings.Contains(r.err, "MemoryError") || r.hits() != "" {
				t.Errorf("%v, %q", r.ExecExited, r.err)
			}
		}
		answers()
	})
}

func TestProcessesMayHaveSoMuchMemoryTogether(t *testing.T) {
	t.Parallel()
	const script = `for i in 1 2 3 4; do python3 -c 'x = bytearray(100 << 20); import time; time.sleep(15)' & done; wait -n` // for the first that is killed
	atLevel(t, func(t *testing.T, level string) {
		if level != sandbox.LevelFull {
			t.Skip("only control groups limit the memory of all processes together")
		}
		c := open(t, level, small)
		answers := c.bystander(t)
		r := c.bash(t, script)
		if r.hits() != "memory" {
			t.Errorf("%v", r.ExecExited)
		}
		answers()
		if r := c.bash(t, "echo on"); r.out != "on\n" || r.end() != "" {
			t.Errorf("the next command: %q %v", r.out, r.ExecExited)
		}
	})
}

func TestAForkBombIsBounded(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small)
		answers := c.bystander(t)
		r, err := c.exec(t.Context(), "b() { b | b & }; b; for i in $(seq 100); do sleep 9 & done; sleep 9", func(s *sandboxv1.ExecStart) { s.Timeout = seconds(2) })
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.err, "fork") {
			t.Errorf("no fork was refused: %v, %q", r.ExecExited, r.err)
		}
		if level == sandbox.LevelFull && r.hits() != "timeout processes" {
			t.Errorf("%v", r.ExecExited)
		}
		answers()
		if r := c.bash(t, "echo still here"); r.out != "still here\n" || r.hits() != "" {
			t.Errorf("afterwards: %v %q", r.ExecExited, r.err)
		}
	})
}

// Others leave no process to start a command with.
func TestACommandWithoutAProcessIsToldOfTheLimit(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		if level != sandbox.LevelFull {
			t.Skip("only control groups count all processes together")
		}
		c := open(t, level, small)
		others := c.launch(t.Context(), t, &sandboxv1.ExecStart{Call: c.call(), Argv: []string{"python3", "-c", `
import os, time
try:
    while True:
        if os.fork() == 0: time.sleep(600)
except BlockingIOError: print("full", flush=True)
time.sleep(600)
`}})
		if m, err := others.Recv(); err != nil || string(m.GetStdout().GetData()) != "full\n" {
			t.Fatalf("%v, %v", m, err)
		}
		r := c.bash(t, "echo hi")
		if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_NOT_STARTED || r.hits() != "processes" || !strings.Contains(r.GetMessage(), "40") || r.out != "" {
			t.Errorf("%v, %q", r.ExecExited, r.out)
		}
	})
}

// It is alone: beside others it would not have the processors that it is to be kept from.
func TestCPUTimeIsShared(t *testing.T) {
	atLevel(t, func(t *testing.T, level string) {
		if level != sandbox.LevelFull {
			t.Skip("only control groups share the processors")
		}
		c := open(t, level, func(c *sandbox.Config) { c.Limits.CPUs = 0.2 })
		answers := c.bystander(t)
		r, err := c.exec(t.Context(), "while :; do :; done & while :; do :; done", func(s *sandboxv1.ExecStart) { s.Timeout = seconds(2) })
		if err != nil {
			t.Fatal(err)
		}
		if used := r.GetCpuTime().AsDuration(); used < 50*time.Millisecond || used > 800*time.Millisecond {
			t.Errorf("used %v of a fifth of two seconds", used)
		}
		if r.GetCpuThrottledTime().AsDuration() <= 0 || !strings.HasPrefix(r.hits(), "timeout") {
			t.Errorf("%v", r.ExecExited)
		}
		answers()
	})
}

func TestOutputAboveTheLimitIsDroppedAndTold(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		r := open(t, level, small).bash(t, "head -c 200000 /dev/zero | tr '\\0' x; echo end >&2; exit 4")
		if !r.GetOutputTruncated() || len(r.out)+len(r.err) != 64<<10 || r.GetExitCode() != 4 {
			t.Errorf("%v with %d bytes", r.ExecExited, len(r.out))
		}
	})
}

func TestLimitsMayOnlyBeLowered(t *testing.T) {
	t.Parallel()
	c := open(t, sandbox.LevelBasic, small)
	for field, l := range map[string]*sandboxv1.ExecLimits{
		"memory_bytes":     {MemoryBytes: 1 << 40},
		"processes":        {Processes: 1 << 20},
		"output_bytes":     {OutputBytes: 1 << 40},
		"file_bytes":       {FileBytes: 1 << 40},
		"open_files":       {OpenFiles: 1 << 30},
		"flood_bytes":      {FloodBytes: 1 << 40},
		"workspace_bytes":  {WorkspaceBytes: 1 << 50},
		"workspace_inodes": {WorkspaceInodes: 1 << 50},
		"timeout":          nil,
	} {
		_, err := c.exec(t.Context(), "true", func(s *sandboxv1.ExecStart) {
			if s.Limits = l; l == nil {
				s.Timeout = seconds(3600)
			}
		})
		wantReason(t, err, "LIMIT_ABOVE_CEILING")
		bad, _ := apierr.Detail[*errdetails.BadRequest](err)
		info, _ := apierr.Detail[*errdetails.ErrorInfo](err)
		if v := bad.GetFieldViolations(); len(v) != 1 || !strings.HasSuffix(v[0].GetField(), field) || info.GetMetadata()["asked"] == "" || info.GetMetadata()["allowed"] == "" {
			t.Errorf("%s: %v %v", field, bad, info)
		}
	}
	_, err := c.exec(t.Context(), "true", func(s *sandboxv1.ExecStart) { s.Limits = &sandboxv1.ExecLimits{CpuMillis: 100} })
	wantReason(t, err, "LIMIT_UNAVAILABLE") // at level basic
	r, err := c.exec(t.Context(), "echo 123456", func(s *sandboxv1.ExecStart) { s.Limits = &sandboxv1.ExecLimits{OutputBytes: 3} })
	if err != nil || r.out != "123" || !r.GetOutputTruncated() {
		t.Errorf("%q %v %v", r.out, r.ExecExited, err)
	}
	// A time that is a wish is cut, not refused.
	r, err = c.exec(t.Context(), "echo short", func(s *sandboxv1.ExecStart) { s.Timeout, s.ShortenTimeout = seconds(3600), true })
	if err != nil || r.out != "short\n" {
		t.Errorf("%q %v %v", r.out, r.ExecExited, err)
	}
}

// lowered are commands that meet a limit which is far below the operator's.
var lowered = []struct {
	name, script string
	limits       *sandboxv1.ExecLimits
	workspace    *sandboxv1.WorkspaceLimits
	full         bool // the level full alone has the limit
	want         sandboxv1.ExitReason
	hits         string
}{
	{"memory", `python3 -c "x = bytearray(90 << 20)"; exit 0`,
		&sandboxv1.ExecLimits{MemoryBytes: 48 << 20}, &sandboxv1.WorkspaceLimits{MemoryBytes: 48 << 20}, true, sandboxv1.ExitReason_EXIT_REASON_EXITED, "memory"},
	{"processes", "sh -c 'for i in $(seq 30); do sleep 0.2 & done; wait'; exit 0", // bash would try again for seconds
		&sandboxv1.ExecLimits{Processes: 10}, &sandboxv1.WorkspaceLimits{Processes: 10}, true, sandboxv1.ExitReason_EXIT_REASON_EXITED, "processes"},
	{"processors", "timeout 0.7 sh -c 'while :; do :; done'; exit 0",
		&sandboxv1.ExecLimits{CpuMillis: 50}, &sandboxv1.WorkspaceLimits{CpuMillis: 50}, true, sandboxv1.ExitReason_EXIT_REASON_EXITED, "cpus"},
	{"the size of a file", "exec head -c 200000 /dev/zero > big",
		&sandboxv1.ExecLimits{FileBytes: 100_000}, &sandboxv1.WorkspaceLimits{FileBytes: 100_000}, false, sandboxv1.ExitReason_EXIT_REASON_FILE_LIMIT, "file-size"},
	{"open files", `exec python3 -c "x = [open('/dev/null') for i in range(60)]"`,
		&sandboxv1.ExecLimits{OpenFiles: 32}, &sandboxv1.WorkspaceLimits{OpenFiles: 32}, false, sandboxv1.ExitReason_EXIT_REASON_EXITED, ""},
	{"kept output", "echo 1234567890",
		&sandboxv1.ExecLimits{OutputBytes: 5}, &sandboxv1.WorkspaceLimits{OutputBytes: 5}, false, sandboxv1.ExitReason_EXIT_REASON_EXITED, "output"},
	{"a flood", "head -c 100000 /dev/zero; sleep 20",
		&sandboxv1.ExecLimits{FloodBytes: 50_000}, &sandboxv1.WorkspaceLimits{FloodBytes: 50_000}, false, sandboxv1.ExitReason_EXIT_REASON_OUTPUT_LIMIT, "flood output"},
	{"the workspace's bytes", "head -c 3000000 /dev/urandom > f; sleep 20",
		&sandboxv1.ExecLimits{WorkspaceBytes: 1 << 20}, &sandboxv1.WorkspaceLimits{WorkspaceBytes: 1 << 20}, false, sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT, "workspace-bytes"},
	{"the workspace's files", "for i in $(seq 60); do : > n$i; done; sleep 20",
		&sandboxv1.ExecLimits{WorkspaceInodes: 40}, &sandboxv1.WorkspaceLimits{WorkspaceInodes: 40}, false, sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT, "workspace-inodes"},
	{"time", "sleep 20",
		nil, &sandboxv1.WorkspaceLimits{Timeout: seconds(0.3)}, false, sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT, "timeout"},
}

// It is alone: beside others it would not have the processors that it is to be kept from.
func TestACommandMayHaveLowerLimits(t *testing.T) {
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small)
		answers := c.bystander(t)
		for _, tc := range lowered {
			if tc.limits == nil || tc.full && level != sandbox.LevelFull {
				continue
			}
			r, err := c.exec(t.Context(), tc.script, func(s *sandboxv1.ExecStart) { s.Limits = tc.limits })
			if err != nil || r.GetReason() != tc.want || r.hits() != tc.hits {
				t.Errorf("%s: %v, %.300q, %v", tc.name, r.ExecExited, r.err, err)
			}
			answers()
			// The next one is not bound by them.
			if r := c.bash(t, "rm -f big f n*; echo 1234567890; ulimit -f; ulimit -n"); r.out != "1234567890\n8192\n4096\n" {
				t.Errorf("after %s: %v %q %q", tc.name, r.ExecExited, r.out, r.err)
			}
		}
	})
}

// It is alone: beside others it would not have the processors that it is to be kept from.
func TestAWorkspaceMayHaveLowerLimits(t *testing.T) {
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, small, func(c *sandbox.Config) { c.SpareSandboxes = 0 })
		answers := c.bystander(t)
		ensure := func(l *sandboxv1.WorkspaceLimits) error {
			_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{Call: c.call(), Limits: l})
			return err
		}
		for _, tc := range lowered {
			if tc.full && level != sandbox.LevelFull {
				continue
			}
			if err := ensure(tc.workspace); err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if r := c.bash(t, tc.script); r.GetReason() != tc.want || r.hits() != tc.hits {
				t.Errorf("%s: %v, %.300q", tc.name, r.ExecExited, r.err)
			}
			answers()
			if err := ensure(nil); err != nil { // changes nothing
				t.Fatal(err)
			}
			// A command may ask for less, and not for more.
			if o := tc.workspace.GetOpenFiles(); o > 0 {
				_, err := c.exec(t.Context(), "true", func(s *sandboxv1.ExecStart) { s.Limits = &sandboxv1.ExecLimits{OpenFiles: o + 1} })
				wantReason(t, err, "LIMIT_ABOVE_CEILING")
			}
			if err := ensure(&sandboxv1.WorkspaceLimits{}); err != nil {
				t.Fatal(err)
			}
			if r := c.bash(t, "rm -f big f n*; echo 1234567890; ulimit -f; ulimit -n"); r.out != "1234567890\n8192\n4096\n" {
				t.Errorf("after %s: %v %q %q", tc.name, r.ExecExited, r.out, r.err)
			}
		}
		for _, l := range []*sandboxv1.WorkspaceLimits{{MemoryBytes: 1 << 40}, {MaxTimeout: seconds(3600)}, {WorkspaceInodes: 1 << 40}, {MaxTimeout: seconds(2), Timeout: seconds(3)}} {
			wantReason(t, ensure(l), "LIMIT_ABOVE_CEILING")
		}
		wantReason(t, ensure(&sandboxv1.WorkspaceLimits{MemoryBytes: 1}), "INVALID_REQUEST")
		if level == sandbox.LevelBasic {
			wantReason(t, ensure(&sandboxv1.WorkspaceLimits{CpuMillis: 100}), "LIMIT_UNAVAILABLE")
		}
	})
}

func TestASpareTakesLowerLimits(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := start(t, func() sandbox.Config { c := configuration(t, level); small(&c); c.SpareSandboxes = 1; return c }())
		_, err := c.workspaces.EnsureWorkspace(t.Context(), &sandboxv1.EnsureWorkspaceRequest{
			Call: c.call(), Limits: &sandboxv1.WorkspaceLimits{OpenFiles: 64, FileBytes: 1 << 20, WorkspaceInodes: 40}, Warm: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := c.bash(t, "ulimit -n; ulimit -f"); r.out != "64\n1024\n" {
			t.Errorf("%q %v", r.out, r.ExecExited)
		}
		if r := c.bash(t, "for i in $(seq 60); do : > n$i; done; sleep 20"); r.hits() != "workspace-inodes" {
			t.Errorf("%v", r.ExecExited)
		}
	})
}

func TestCommandsAboveTheNumberAreRefused(t *testing.T) {
	t.Parallel()
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

// A walk of a workspace keeps each name: the names of one file count, too.
func TestEveryNameOfAFileCounts(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		c := open(t, level, func(cfg *sandbox.Config) { cfg.Limits.WorkspaceInodes = 500 })
		r := c.bash(t, "touch f; for i in {1..1000}; do echo $i; done | xargs -I{} ln f l{}; sleep 10")
		if r.GetReason() != sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT {
			t.Errorf("it ended %v %q", r.ExecExited, r.err)
		}
	})
}

// A file may be larger than what it takes on the disk, or have other names: no more than it
// took is given back when another takes its place.
func TestAReplacedFileGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"holes":       "truncate -s 8000000 a b c d",
		"other names": "head -c 7000000 /dev/zero > x; for n in a b c d; do ln x $n; done",
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, sandbox.LevelBasic, small)
			c.bash(t, script)
			for _, n := range []string{"a", "b", "c", "d"} {
				if _, err := c.write(t, n, "replaced", nil); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			for _, n := range []string{"1", "2", "3"} { // 18 MB in 16 MiB
				if err == nil {
					_, err = c.write(t, n, strings.Repeat("x", 6_000_000), nil)
				}
			}
			wantReason(t, err, "WORKSPACE_FULL")
		})
	}
}
