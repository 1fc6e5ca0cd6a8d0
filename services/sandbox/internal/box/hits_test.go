package box

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// spoken is a command that has written something.
func spoken(t *testing.T, text string) *Exec {
	t.Helper()
	e := newExec(openNode(t, options(t, &fake{})), t.TempDir(), record{})
	e.limits = e.node.o.Limits
	if err := os.WriteFile(filepath.Join(e.dir, streamFiles[1]), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e.streams[1].size = int64(len(text))
	return e
}

// told are the limits that a command is said to have met, without which ended it.
func told(e *Exec, exit Exit) (reason Reason, limits string) {
	o := e.judge(exit)
	return o.Reason, names(append(o.Hits, e.met(exit, &o, 0)...))
}

func names(hits []Hit) string {
	var b strings.Builder
	for _, h := range hits {
		b.WriteString(h.Limit + " ")
	}
	return b.String()
}

// Where the node's disk is full, that is what a program met in the workspace, and no limit of its
// own: unless the file system said that the workspace was.
func TestAFullDiskIsNoLimitOfTheCommands(t *testing.T) {
	for _, tc := range []struct {
		full   error
		filled string
		says   string
		want   string
	}{
		{nil, "", "no space left on device", "tmp "},
		{errors.New("full"), "", "no space left on device", "disk "},
		{errors.New("full"), hitBytes, "no space left on device", "workspace-bytes "},
		{errors.New("full"), "", "disk quota exceeded", "workspace-bytes "},
		{errors.New("full"), "", "", ""},
	} {
		e := spoken(t, tc.says)
		e.node.o.Room = fullness{tc.full}
		e.filled = Hit{Limit: tc.filled}
		if _, got := told(e, Exit{Status: 1}); got != tc.want {
			t.Errorf("%+v: told %q", tc, got)
		}
	}
}

// fullness is a disk's.
type fullness struct{ error }

func (f fullness) Check() error { return f.error }
func (fullness) Tight() bool    { return false }

func TestWhatProgramsSayOfLimitsIsUnderstood(t *testing.T) {
	const traceback = "  File \"subprocess.py\", line 1901, in _execute_child\n    self.pid = _fork_exec(\n               ^^^^^^^^^^^\n"
	for says, want := range map[string]string{
		"head: error writing: No space left on device":                                "tmp ",
		"write /tmp/x: no space left on device":                                       "tmp ",
		"Error: ENOSPC: no space left on device, write":                               "tmp ",
		"Error: ENOSPC: System limit for number of file watchers reached, watch '/x'": "",
		"open /dev/null: too many open files":                                         "open-files ",
		"Error: EMFILE: too many open files, open '/dev/null'":                        "open-files ",
		"Error: spawn /bin/true EMFILE":                                               "open-files ",
		"no such class: SystemFile":                                                   "",
		"write x: file too large":                                                     "file-size ",
		"Error: Unknown system error -122: Unknown system error -122, write":          "workspace-bytes ",
		"fork/exec /bin/true: cannot allocate memory":                                 "memory ",
		"Out of memory!":            "memory ",
		"  what():  std::bad_alloc": "memory ",
		"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory": "memory ",
		"# Fatal process OOM in Failed to reserve virtual memory for CodeRange":             "memory ",
		"runtime: out of memory: cannot allocate 67108864-byte block (272367616 in use)":    "memory ",
		"fatal error: failed to reserve page summary memory":                                "memory ",
		"memory allocation of 1073741824 bytes failed":                                      "memory ",
		"MemoryError":                                                              "memory ",
		"RuntimeError: can't start new thread":                                     "processes ",
		"bash: fork: retry: Resource temporarily unavailable":                      "processes ",
		"sh: 1: Cannot fork":                                                       "processes ",
		"fork/exec /bin/true: resource temporarily unavailable":                    "processes ",
		traceback + "BlockingIOError: [Errno 11] Resource temporarily unavailable": "processes ",
		"Error: spawn sh EAGAIN":                                                   "processes ",
		"runtime: failed to create new OS thread (have 9 already; errno=11)":       "processes ",
		"curl: (7) Failed to connect: Resource temporarily unavailable":            "",
		"read: EAGAIN: resource temporarily unavailable, read":                     "",
	} {
		e := spoken(t, "as ever\n"+says+"\n")
		if _, got := told(e, Exit{Status: 1}); got != want {
			t.Errorf("%q is told as %q, want %q", says, got, want)
		}
		if _, got := told(e, Exit{}); got != "" {
			t.Errorf("%q of one that did not fail is told as %q", says, got)
		}
		if reason, got := told(e, Exit{Signal: int(unix.SIGABRT)}); reason != Signaled || got != want {
			t.Errorf("%q of one that aborted is told as %q, %v", says, got, reason)
		}
	}
}

// Where the kernel counts what it refuses of memory and processes, words about these are
// about something else.
func TestWordsTellNothingThatTheKernelCounts(t *testing.T) {
	for says, want := range map[string]string{
		"bash: fork: retry: Resource temporarily unavailable": "",
		"mmap: Cannot allocate memory":                        "",
		"open: Too many open files":                           "open-files ",
		"write: No space left on device":                      "tmp ",
	} {
		if _, got := told(spoken(t, says), Exit{Status: 1, Counted: true}); got != want {
			t.Errorf("%q is told as %q, want %q", says, got, want)
		}
	}
}

func TestOnlyACommandThatWasKilledForMemoryIsOutOfMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		exit Exit
		want Reason
	}{
		"it was killed": {Exit{Signal: int(unix.SIGKILL)}, OutOfMemory},
		"a shell passes on that its last one was":  {Exit{Status: 137}, OutOfMemory},
		"its sandbox went with it":                 {Exit{Lost: true}, OutOfMemory},
		"it went on, and failed for another cause": {Exit{Status: 3}, Exited},
		"it went on, and was ended":                {Exit{Signal: int(unix.SIGTERM)}, Signaled},
		"it went on":                               {Exit{}, Exited},
	} {
		tc.exit.OOMKilled, tc.exit.Counted = true, true
		if reason, limits := told(spoken(t, ""), tc.exit); reason != tc.want || limits != "memory " {
			t.Errorf("%s: %v, met %q", name, reason, limits)
		}
	}
}

// Of what all commands in a sandbox met together one is told that met it as well.
func TestACommandIsNotToldWhatItsNeighborsMet(t *testing.T) {
	common := Met{Throttled: time.Second, Refused: 3}
	for name, tc := range map[string]struct {
		says string
		exit Exit
		want string
	}{
		"one that sleeps":             {"", Exit{Common: common}, ""},
		"one that got no process":     {"bash: fork: retry: Resource temporarily unavailable", Exit{Common: common}, "processes "},
		"one that wanted processors":  {"", Exit{Common: common, CPU: time.Second}, "cpus "},
		"one that was alone":          {"", Exit{Met: common}, "processes cpus "},
		"one that nobody was refused": {"bash: fork: retry: Resource temporarily unavailable", Exit{}, ""},
	} {
		e := spoken(t, tc.says)
		e.common.CPUs = 1
		tc.exit.Counted = true
		o := e.judge(tc.exit)
		if limits := names(e.met(tc.exit, &o, 2*time.Second)); limits != tc.want {
			t.Errorf("%s is told %q, want %q", name, limits, tc.want)
		}
	}
}
