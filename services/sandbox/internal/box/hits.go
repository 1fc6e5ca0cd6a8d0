package box

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
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
	hitOpenFiles = "open-files"
	hitOutput    = "output"
	hitFlood     = "flood"
	hitBytes     = "workspace-bytes"
	hitInodes    = "workspace-inodes"
	hitTmp       = "tmp"
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

// met lists the limits that a command met without being ended for them. The kernel reports memory,
// processes and processors. Other limits are visible only to the command, so the end of its output is
// searched if it failed. mu is held.
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
		hit(hitMemory, "one of its processes was killed because together they wanted more memory than the %d bytes that they may have%s", l.MemoryBytes, scratchNote(exit))
	}
	if exit.Refused > 0 {
		hit(hitProcesses, "%d times it could not make a process or thread: there may be %d at once", exit.Refused, l.Processes)
	}
	if exit.Throttled >= throttledLeast && exit.Throttled >= wall/throttledShare {
		hit(hitCPUs, "it was held back for %v: it may use as much time as %g processors give", exit.Throttled.Round(time.Millisecond), l.CPUs)
	}
	e.metTogether(exit, wall, hit)
	if e.filled.Limit != "" {
		hit(e.filled.Limit, "%s", e.filled.Message)
	}
	switch {
	case e.unkept:
		hit(hitOutput, "%d bytes of its output were thrown away, for the node's disk kept no more", e.written-e.kept)
	case e.written > e.kept:
		hit(hitOutput, "%d bytes of its output were thrown away: %d are kept", e.written-e.kept, l.OutputBytes)
	}
	if o.Reason == Signaled || o.Reason == Exited && o.ExitCode != 0 {
		e.readLastWords(o.ExitCode, exit.Counted, hit)
	}
	return hits
}

// scratchNote returns a sentence about how much memory files in memory took from the command.
func scratchNote(exit Exit) string {
	if exit.ScratchBytes < 1<<20 {
		return ""
	}
	return fmt.Sprintf(". Files in /tmp and /dev/shm count as memory and take %d bytes of it: delete those that are not needed", exit.ScratchBytes)
}

// metTogether reports limits of all commands in the sandbox. The kernel cannot tell which command met them,
// so the output and the exit of this one decide. mu is held.
func (e *Exec) metTogether(exit Exit, wall time.Duration, hit func(limit, format string, args ...any)) {
	if exit.Common.Refused > 0 && saysCrowded(e.tail()) {
		hit(hitProcesses, "it could not make a process or thread: all commands of the workspace together may have %d at once", e.common.Processes)
	}
	if t := e.heldBack(exit, wall); t >= throttledLeast && t >= wall/throttledShare {
		hit(hitCPUs, "the commands of the workspace were held back for %v: together they may use as much time as %g processors give", t.Round(time.Millisecond), e.common.CPUs)
	}
}

// heldBack returns how long all commands in the sandbox waited for processors. It returns zero if this
// command used too little processor time to have waited. mu is held.
func (e *Exec) heldBack(exit Exit, wall time.Duration) time.Duration {
	if exit.CPU.Seconds() < e.common.CPUs*wall.Seconds()/throttledShare {
		return 0
	}
	return exit.Common.Throttled
}

// sigxfszStatus is the exit status of a shell whose last command exceeded the size of a file.
const sigxfszStatus = 128 + 25

// lastWords is how many bytes of the end of the output are searched. Programs that abort print a stack
// trace after the reason: Go prints several kilobytes.
const lastWords = 16 << 10

// readLastWords detects limits that only programs notice, from their last output. Where the kernel counts
// refused memory and processes, counted is true and the same words mean something else. mu is held.
func (e *Exec) readLastWords(status int, counted bool, hit func(limit, format string, args ...any)) {
	text, l := e.tail(), e.limits
	if status == sigxfszStatus || says(text, fileWords) {
		hit(hitFile, "a file was to be larger than the %d bytes that a file may have", l.FileBytes)
	}
	if says(text, openFilesWords) {
		hit(hitOpenFiles, "a process wanted more open files than the %d that it may have", l.OpenFiles)
	}
	if !counted && says(text, memoryWords) {
		hit(hitMemory, "it seems that it got no more memory: it may have %d bytes", l.MemoryBytes)
	}
	if !counted && saysCrowded(text) {
		hit(hitProcesses, "it seems that it could not make a process or thread: there may be %d at once, and a thread takes some of the %d bytes of memory that a process may have", l.Processes, l.MemoryBytes)
	}
	quota, space := says(text, quotaWords), says(text, spaceWords)
	switch full := cmp.Or(e.filled, e.before); { // some file systems have the same word for both
	case (quota || space) && full.Limit != "":
		hit(full.Limit, "%s", full.Message)
	case quota:
		hit(hitBytes, "the workspace is full: with the home directory it may have %d bytes and %d files and directories", l.WorkspaceBytes, l.WorkspaceInodes)
	case space && e.node.full():
		hit(hitDisk, "a file system was full, and a disk of the node is full or nearly so, whoever has filled it: try again later, or ask the operator to make room. If it was /tmp, which may have %d bytes, or /dev/shm, which may have %d, delete files there", l.TmpBytes, l.ShmBytes)
	case space && e.full != nil:
		hit(hitTmp, "a file system was full: /tmp has %d bytes and /dev/shm %d, and each as many files as fit 4096 bytes each; the workspace may have %d bytes and %d files", l.TmpBytes, l.ShmBytes, l.WorkspaceBytes, l.WorkspaceInodes)
	case space:
		hit(hitTmp, "a file system was full: /tmp has %d bytes and /dev/shm %d, and each as many files as fit 4096 bytes each; the workspace has more", l.TmpBytes, l.ShmBytes)
	}
}

// tail returns the end of both stored outputs, in lower case. mu is held.
func (e *Exec) tail() string {
	var b strings.Builder
	for i, name := range streamFiles {
		n := min(e.streams[i].size, lastWords)
		if n == 0 {
			continue
		}
		f, err := os.Open(filepath.Join(e.dir, name))
		if err != nil {
			continue // it was forgotten meanwhile
		}
		raw := make([]byte, n)
		read, _ := f.ReadAt(raw, e.streams[i].size-n)
		_ = f.Close()
		b.Write(raw[:read])
		b.WriteByte('\n')
	}
	return strings.ToLower(b.String())
}
