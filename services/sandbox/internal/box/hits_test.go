package box

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// quiet is a command that has written nothing.
func quiet(t *testing.T) *Exec {
	t.Helper()
	e := newExec(openNode(t, options(t, &fake{})), t.TempDir(), record{})
	e.limits = e.node.o.Limits
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
		tc.exit.OOMKilled = true
		if reason, limits := told(quiet(t), tc.exit); reason != tc.want || limits != "memory " {
			t.Errorf("%s: %v, met %q", name, reason, limits)
		}
	}
}

// Of what all commands in a sandbox met together one is told that met it as well.
func TestACommandIsNotToldWhatItsNeighborsMet(t *testing.T) {
	common := Met{Throttled: time.Second, Refused: 3}
	for name, tc := range map[string]struct {
		exit Exit
		want string
	}{
		"one that sleeps":                 {Exit{Common: common}, ""},
		"one that wanted processors":      {Exit{Common: common, CPU: time.Second}, "cpus "},
		"one that was alone":              {Exit{Met: common}, "processes cpus "},
		"one whose file became too large": {Exit{Status: sigxfszStatus}, "file-size "},
	} {
		e := quiet(t)
		e.common.CPUs = 1
		o := e.judge(tc.exit)
		if limits := names(e.met(tc.exit, &o, 2*time.Second)); limits != tc.want {
			t.Errorf("%s is told %q, want %q", name, limits, tc.want)
		}
	}
}
