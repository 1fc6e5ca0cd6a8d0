package agent

import (
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Limits bound the workspace of an agent's session and everything that runs in
// it. Zero means the limit of the sandbox's operator, whose service refuses
// higher limits. Sizes are in bytes.
type Limits struct {
	Memory          int64         `key:"memory" json:"memory,omitempty" help:"memory of the workspace's commands together, in bytes"`
	Processes       int32         `key:"processes" json:"processes,omitempty" help:"processes and threads of the workspace's commands together"`
	CPUs            float64       `key:"cpus" json:"cpus,omitempty" help:"processors' worth of time for the workspace's commands together (sandbox level full)"`
	FileSize        int64         `key:"file-size" json:"file_size,omitempty" help:"size of one file that a command writes, in bytes"`
	OpenFiles       int32         `key:"open-files" json:"open_files,omitempty" help:"open files of one process"`
	Output          int64         `key:"output" json:"output,omitempty" help:"output of a command that is kept, in bytes"`
	Flood           int64         `key:"flood" json:"flood,omitempty" help:"output, kept or not, after which a command is killed, in bytes"`
	WorkspaceBytes  int64         `key:"workspace-bytes" json:"workspace_bytes,omitempty" help:"size of the workspace with its home directory, in bytes on disk"`
	WorkspaceInodes int64         `key:"workspace-inodes" json:"workspace_inodes,omitempty" help:"files and directories in the workspace with its home directory"`
	Timeout         time.Duration `key:"timeout" json:"timeout,omitempty" help:"how long a command may run when it sets no timeout"`
	MaxTimeout      time.Duration `key:"max-timeout" json:"max_timeout,omitempty" help:"the longest timeout that a command may set"`
}

func (l Limits) check() error {
	for _, x := range []struct {
		name  string
		value float64
	}{
		{"memory", float64(l.Memory)}, {"processes", float64(l.Processes)}, {"cpus", l.CPUs}, {"file-size", float64(l.FileSize)},
		{"open-files", float64(l.OpenFiles)}, {"output", float64(l.Output)}, {"flood", float64(l.Flood)},
		{"workspace-bytes", float64(l.WorkspaceBytes)}, {"workspace-inodes", float64(l.WorkspaceInodes)},
		{"timeout", float64(l.Timeout)}, {"max-timeout", float64(l.MaxTimeout)},
	} {
		if x.value < 0 || math.IsNaN(x.value) {
			return fmt.Errorf("limits.%s is negative", x.name)
		}
	}
	if l.CPUs > 0 && l.CPUs < 0.01 {
		return fmt.Errorf("limits.cpus: %g is less than 0.01", l.CPUs)
	}
	return nil
}

func (l Limits) cpuMillis() int64 { return int64(math.Round(l.CPUs * 1000)) }

// WorkspaceLimits returns the limits to request from the sandbox. Without limits
// it requests the removal of those of the session's earlier agent.
func (s Spec) WorkspaceLimits() *sandboxv1.WorkspaceLimits {
	l := s.Limits
	w := &sandboxv1.WorkspaceLimits{
		MemoryBytes: l.Memory, Processes: l.Processes, CpuMillis: l.cpuMillis(), FileBytes: l.FileSize, OpenFiles: l.OpenFiles,
		OutputBytes: l.Output, FloodBytes: l.Flood, WorkspaceBytes: l.WorkspaceBytes, WorkspaceInodes: l.WorkspaceInodes,
	}
	w.Timeout, w.MaxTimeout = optionalDuration(l.Timeout), optionalDuration(l.MaxTimeout)
	return w
}

// RunsCommands reports whether the agent's calls need a sandbox, and not only its
// files.
func (s Spec) RunsCommands() bool { return slices.Contains(s.Tools, "Bash") }

func optionalDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func (s Spec) limitsProto() *sessionv1.AgentLimits {
	l := s.Limits
	if l == (Limits{}) {
		return nil
	}
	return &sessionv1.AgentLimits{
		MemoryBytes: l.Memory, Processes: l.Processes, CpuMillis: l.cpuMillis(), FileBytes: l.FileSize, OpenFiles: l.OpenFiles,
		OutputBytes: l.Output, FloodBytes: l.Flood, WorkspaceBytes: l.WorkspaceBytes, WorkspaceInodes: l.WorkspaceInodes,
		Timeout: optionalDuration(l.Timeout), MaxTimeout: optionalDuration(l.MaxTimeout),
	}
}
