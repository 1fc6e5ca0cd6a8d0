package bubblewrap

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// helpers is how many threads of a sandbox are init's.
const helpers = 12

// resource is a limit on each process.
type resource struct {
	name  string
	id    int
	value uint64
}

// resources are the process limits of everything in a sandbox. Those for memory
// and for the number of processes are not init's, and are set for each command
// where no control group does better.
func resources(l box.Limits) []resource {
	return []resource{
		{"core", unix.RLIMIT_CORE, 0},
		{"fsize", unix.RLIMIT_FSIZE, uint64(l.FileBytes)},
		{"nofile", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)},
		{"memlock", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"msgqueue", unix.RLIMIT_MSGQUEUE, 1 << 20},
		{"sigpending", unix.RLIMIT_SIGPENDING, 4096},
	}
}

// limit lowers the limits of a sandbox that waits to be let go. A process may do
// that to another one of its own user without any privilege, so this runs with
// the credentials of the sandbox's owner; root does not do, where it lacks the
// capability for resources.
func limit(pid int, o box.Owner, all []resource) error {
	return as(o, func() error {
		for _, r := range all {
			var old unix.Rlimit
			if err := unix.Prlimit(pid, r.id, nil, &old); err != nil {
				return fmt.Errorf("read limit %s: %w", r.name, err)
			}
			value := min(r.value, old.Max)
			if err := unix.Prlimit(pid, r.id, &unix.Rlimit{Cur: value, Max: value}, nil); err != nil {
				return fmt.Errorf("set limit %s: %w", r.name, err)
			}
		}
		return nil
	})
}
