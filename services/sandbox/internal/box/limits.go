package box

import (
	"strconv"
	"time"
)

// Limits bound one command. Every one of them is positive.
type Limits struct {
	MemoryBytes     int64         // all processes together (level `full`) or each (level `basic`)
	Processes       int64         // processes and threads
	CPUs            float64       // processors' worth of time; level `full` only
	FileBytes       int64         // the size of one file
	OpenFiles       int64         // open files of one process
	OutputBytes     int64         // output kept, both streams added up
	FloodBytes      int64         // output written, kept or not, that ends the command
	TmpBytes        int64         // /tmp
	ShmBytes        int64         // /dev/shm
	WorkspaceBytes  int64         // the workspace and the home directory on disk
	WorkspaceInodes int64         // files and directories in them
	Timeout         time.Duration // wall time when the command does not say
	MaxTimeout      time.Duration // the most that a command may ask for
}

// Lower are the limits that one command asks for. Zero means the operator's.
type Lower struct {
	MemoryBytes int64
	Processes   int64
	OutputBytes int64
	Timeout     time.Duration
}

// lowered returns l with what a command asked for, which must not be above it.
func (l Limits) lowered(by Lower) (Limits, error) {
	for _, x := range []struct {
		name   string
		asked  int64
		target *int64
	}{
		{"limits.memory_bytes", by.MemoryBytes, &l.MemoryBytes},
		{"limits.processes", by.Processes, &l.Processes},
		{"limits.output_bytes", by.OutputBytes, &l.OutputBytes},
	} {
		if x.asked == 0 {
			continue
		}
		if x.asked > *x.target {
			return Limits{}, &CeilingError{Field: x.name, Asked: strconv.FormatInt(x.asked, 10), Ceiling: strconv.FormatInt(*x.target, 10)}
		}
		*x.target = x.asked
	}
	if by.Timeout > l.MaxTimeout {
		return Limits{}, &CeilingError{Field: "timeout", Asked: by.Timeout.String(), Ceiling: l.MaxTimeout.String()}
	}
	if by.Timeout > 0 {
		l.Timeout = by.Timeout
	}
	return l, nil
}
