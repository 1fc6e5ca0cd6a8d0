package box

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Limits bound the commands of a workspace. All are positive, except CPUs, which is zero where processors
// cannot be limited.
type Limits struct {
	MemoryBytes     int64         // all processes together; at level `basic` each, and all when they are looked at
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

// Lower are limits that a workspace or a command asks for. Zero means the limit above it: the operator's
// for a workspace, the workspace's for a command.
type Lower struct {
	MemoryBytes     int64         `json:"memory_bytes,omitempty"`
	Processes       int64         `json:"processes,omitempty"`
	CPUs            float64       `json:"cpus,omitempty"`
	FileBytes       int64         `json:"file_bytes,omitempty"`
	OpenFiles       int64         `json:"open_files,omitempty"`
	OutputBytes     int64         `json:"output_bytes,omitempty"`
	FloodBytes      int64         `json:"flood_bytes,omitempty"`
	WorkspaceBytes  int64         `json:"workspace_bytes,omitempty"`
	WorkspaceInodes int64         `json:"workspace_inodes,omitempty"`
	Timeout         time.Duration `json:"timeout,omitempty"`
	MaxTimeout      time.Duration `json:"max_timeout,omitempty"` // only of a workspace
	// Shorten replaces a Timeout above the ceiling by the ceiling. Only of a command.
	Shorten bool `json:"-"`
}

// least are the smallest limits of a workspace in which a sandbox can be made and a shell run.
var least = Limits{
	MemoryBytes: 16 << 20, Processes: 4, CPUs: 0.01, FileBytes: 4096, OpenFiles: 16, OutputBytes: 1, FloodBytes: 1,
	WorkspaceBytes: 64 << 10, WorkspaceInodes: 16, Timeout: time.Millisecond, MaxTimeout: time.Millisecond,
}

// limit is one of the limits that can be asked for.
type limit struct {
	field  string // in the contract
	asked  float64
	target func(*Limits) any
	show   func(float64) string
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
func millis(v float64) string { return strconv.FormatFloat(math.Round(v*1000), 'f', -1, 64) }
func clock(v float64) string  { return time.Duration(v).String() }

// all lists the requested limits. Numbers up to 2^53 are exact, and no limit is larger.
func (by Lower) all() []limit {
	return []limit{
		{"limits.memory_bytes", float64(by.MemoryBytes), func(l *Limits) any { return &l.MemoryBytes }, number},
		{"limits.processes", float64(by.Processes), func(l *Limits) any { return &l.Processes }, number},
		{"limits.cpu_millis", by.CPUs, func(l *Limits) any { return &l.CPUs }, millis},
		{"limits.file_bytes", float64(by.FileBytes), func(l *Limits) any { return &l.FileBytes }, number},
		{"limits.open_files", float64(by.OpenFiles), func(l *Limits) any { return &l.OpenFiles }, number},
		{"limits.output_bytes", float64(by.OutputBytes), func(l *Limits) any { return &l.OutputBytes }, number},
		{"limits.flood_bytes", float64(by.FloodBytes), func(l *Limits) any { return &l.FloodBytes }, number},
		{"limits.workspace_bytes", float64(by.WorkspaceBytes), func(l *Limits) any { return &l.WorkspaceBytes }, number},
		{"limits.workspace_inodes", float64(by.WorkspaceInodes), func(l *Limits) any { return &l.WorkspaceInodes }, number},
	}
}

// times lists a workspace's requested limits of time.
func (by Lower) times() []limit {
	return []limit{
		{"limits.max_timeout", float64(by.MaxTimeout), func(l *Limits) any { return &l.MaxTimeout }, clock},
		{"limits.timeout", float64(by.Timeout), func(l *Limits) any { return &l.Timeout }, clock},
	}
}

func (x limit) of(l *Limits) float64 {
	switch p := x.target(l).(type) {
	case *int64:
		return float64(*p)
	case *float64:
		return *p
	case *time.Duration:
		return float64(*p)
	}
	panic("a limit is a number or a time")
}

func (x limit) set(l *Limits, v float64) {
	switch p := x.target(l).(type) {
	case *int64:
		*p = int64(v)
	case *float64:
		*p = v
	case *time.Duration:
		*p = time.Duration(v)
	}
}

// lowered returns l with the limits that a command requested, which must not exceed it.
func (l Limits) lowered(by Lower) (Limits, error) {
	for _, x := range by.all() {
		if err := x.apply(&l, "start."); err != nil {
			return Limits{}, err
		}
	}
	if by.Timeout > l.MaxTimeout && by.Shorten {
		by.Timeout = l.MaxTimeout
	}
	if by.Timeout > l.MaxTimeout {
		return Limits{}, &CeilingError{Field: "start.timeout", Asked: by.Timeout.String(), Ceiling: l.MaxTimeout.String()}
	}
	if by.Timeout > 0 {
		l.Timeout = by.Timeout
	}
	l.OutputBytes = min(l.OutputBytes, l.FloodBytes)
	return l, nil
}

// apply lowers one limit.
func (x limit) apply(l *Limits, prefix string) error {
	above := x.of(l)
	switch {
	case x.asked == 0:
		return nil
	case above == 0:
		return fmt.Errorf("%w: %s%s: it needs control groups, which this node's level does not have: leave it out, or ask the operator to set up the level `full`", ErrLimitUnavailable, prefix, x.field)
	case x.asked > above:
		return &CeilingError{Field: prefix + x.field, Asked: x.show(x.asked), Ceiling: x.show(above)}
	}
	x.set(l, x.asked)
	return nil
}

// check refuses limits that a workspace must not request.
func (l Limits) check(by Lower) error {
	under := l
	for _, x := range append(by.all(), by.times()...) {
		if x.field == "limits.timeout" {
			under.Timeout = under.MaxTimeout // the default may exceed the operator's, up to the ceiling
		}
		if err := x.apply(&under, ""); err != nil {
			return err
		}
		if floor := x.of(&least); x.asked > 0 && x.asked < floor {
			return &FloorError{Field: x.field, Asked: x.show(x.asked), Least: x.show(floor)}
		}
	}
	return nil
}

// under returns l, lowered to what a workspace requested when it was checked. If the operator has lowered l
// since, the lower one holds.
func (l Limits) under(by *Lower) Limits {
	if by == nil {
		return l
	}
	for _, x := range by.all() {
		if x.asked > 0 {
			x.set(&l, min(x.of(&l), x.asked))
		}
	}
	if by.MaxTimeout > 0 {
		l.MaxTimeout = min(l.MaxTimeout, by.MaxTimeout)
	}
	if by.Timeout > 0 {
		l.Timeout = by.Timeout
	}
	l.Timeout = min(l.Timeout, l.MaxTimeout)
	l.OutputBytes = min(l.OutputBytes, l.FloodBytes)
	return l.BoundScratch()
}

// BoundScratch returns l with /tmp and /dev/shm well below the memory limit, against which their files
// count. Otherwise full ones would leave no memory to delete the files with.
func (l Limits) BoundScratch() Limits {
	l.TmpBytes = min(l.TmpBytes, l.MemoryBytes/2)
	l.ShmBytes = min(l.ShmBytes, l.MemoryBytes/8)
	return l
}

// limits returns the limits of the session's workspace and of all that runs in it. mu is held.
func (ws *workspace) limits() Limits {
	if ws.meta == nil {
		return ws.node.o.Limits
	}
	return ws.node.o.Limits.under(ws.meta.Limits)
}
