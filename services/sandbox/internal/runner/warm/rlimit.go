package warm

import (
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// helpers is how many threads of a sandbox are init's.
const helpers = 12

// Resource is a limit on each process.
type Resource struct {
	Name  string // as setrlimit(2) has it: RLIMIT_CORE is `core`
	ID    int
	Value uint64
}

// Resources are the process limits of everything in a sandbox. Those for memory
// and for the number of processes are not init's, and are set for each command
// where no control group does better.
func Resources(l box.Limits) []Resource {
	return []Resource{
		{"core", unix.RLIMIT_CORE, 0},
		{"fsize", unix.RLIMIT_FSIZE, uint64(l.FileBytes)},
		{"nofile", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)},
		{"memlock", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"msgqueue", unix.RLIMIT_MSGQUEUE, 1 << 20},
		{"sigpending", unix.RLIMIT_SIGPENDING, 4096},
	}
}
