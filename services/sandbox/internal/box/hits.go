package box

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
)

// Hit is a limit that a command met.
type Hit struct {
	Limit   string `json:"limit"`
	Message string `json:"message"` // for people and models
}

// Names of limits, as in the contract.
const (
	hitMemory    = "memory"
	hitProcesses = "processes"
	hitCPUs      = "cpus"
	hitFile      = "file-size"
	hitOutput    = "output"
	hitFlood     = "flood"
	hitBytes     = disk.Bytes
	hitInodes    = disk.Inodes
	hitDisk      = "disk" // the node's
	hitTerminals = "terminals"
	hitTimeout   = "timeout"
)

// overLimit returns the outcome of a command that was ended by a limit.
func overLimit(r Reason, limit, message string) Outcome {
	return Outcome{Reason: r, Message: message, Hits: []Hit{{limit, message}}}
}

// Thresholds from which the time that a command waited for processors is reported.
const (
	throttledLeast = 200 * time.Millisecond
	throttledShare = 10 // at least one part in so many of the wall time
)

// met lists the limits that a command met without being ended for them: those that the kernel or the service
// counts. mu is held.
func (e *Exec) met(exit Exit, o *Outcome, wall time.Duration) []Hit {
	l := e.limits
	if l.MemoryBytes == 0 || exit.Lost || exit.NotStarted != "" {
		return nil // nothing is known
	}
	var hits []Hit
	hit := func(limit, format string, args ...any) {
		for _, h := range append(o.Hits, hits...) {
			if h.Limit == limit {
				return
			}
		}
		hits = append(hits, Hit{limit, fmt.Sprintf(format, args...)})
	}
	if exit.OOMKilled {
		hit(hitMemory, "one of its processes was killed because together they exceeded their memory limit of %d bytes%s", l.MemoryBytes, scratchNote(exit))
	}
	if exit.Refused > 0 {
		hit(hitProcesses, "%d times it could not start a process or thread: the limit is %d", exit.Refused, l.Processes)
	}
	if exit.Throttled >= throttledLeast && exit.Throttled >= wall/throttledShare {
		hit(hitCPUs, "it was throttled for %v: its limit is the time of %g processors", exit.Throttled.Round(time.Millisecond), l.CPUs)
	}
	if t := e.throttledFor(exit, wall); t >= throttledLeast && t >= wall/throttledShare {
		hit(hitCPUs, "the commands of the workspace were throttled for %v: their common limit is the time of %g processors", t.Round(time.Millisecond), e.common.CPUs)
	}
	if exit.Status == sigxfszStatus {
		hit(hitFile, "a file would have exceeded the limit of %d bytes", l.FileBytes)
	}
	if e.quota.filled.Limit != "" {
		hit(e.quota.filled.Limit, "%s", e.quota.filled.Message)
	}
	switch kept, written, full := e.output.counts(); {
	case full:
		hit(hitOutput, "%d bytes of its output were dropped, because the node's disk could not store them", written-kept)
	case written > kept:
		hit(hitOutput, "%d bytes of its output were dropped: %d are kept", written-kept, l.OutputBytes)
	}
	return hits
}

// scratchNote returns a sentence about how much memory files in memory took from the command.
func scratchNote(exit Exit) string {
	if exit.ScratchBytes < 1<<20 {
		return ""
	}
	return fmt.Sprintf(". Files in /tmp and /dev/shm count as memory and take %d bytes of it: delete unneeded files", exit.ScratchBytes)
}

// throttledFor returns how long all commands in the sandbox waited for processors. It returns zero if this
// command used too little processor time to have waited. mu is held.
func (e *Exec) throttledFor(exit Exit, wall time.Duration) time.Duration {
	if exit.CPU.Seconds() < e.common.CPUs*wall.Seconds()/throttledShare {
		return 0
	}
	return exit.Common.Throttled
}

// sigxfszStatus is the exit status of a shell whose last command exceeded the size of a file.
const sigxfszStatus = 128 + 25

// MaxTerminals is how many pseudo-terminals a sandbox may have open. The machine has a fixed number, some
// thousands, for all sandboxes.
const MaxTerminals = 64

// lookAtTerminals ends the command if its sandbox has too many terminals. That is possible only where
// nothing limits them.
func (e *Exec) lookAtTerminals(n int) {
	if why := tooManyTerminals(n); why != "" {
		e.stop(overLimit(TerminalLimit, hitTerminals, "the command was ended because "+why))
	}
}

// tooManyTerminals returns why the number is too large, or an empty string.
func tooManyTerminals(n int) string {
	if n <= MaxTerminals {
		return ""
	}
	return fmt.Sprintf("more than %d pseudo-terminals were open in its sandbox. Have fewer programs on terminals of their own", MaxTerminals)
}
