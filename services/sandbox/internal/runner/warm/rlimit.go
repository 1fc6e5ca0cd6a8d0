package warm

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// helpers is how many threads of a sandbox are init's, and of one that is elsewhere
// also those that carry what is said.
const (
	helpers       = 12
	remoteHelpers = 28
)

func (s *sandbox) helpers() uint64 {
	if s.init == 0 {
		return remoteHelpers
	}
	return helpers
}

// ownFiles is how many more files init may have than commands. A user may have so many under
// way in sockets as the process that sends one may have open: commands that keep theirs there
// would leave none for init else, which hands processes over.
const ownFiles = 4096

// Resource is a limit on each process.
type Resource struct {
	Name  string // as setrlimit(2) has it: RLIMIT_CORE is `core`
	ID    int
	Value uint64
}

// Resources are the process limits of everything in a sandbox. Those for memory
// and for the number of processes are not init's, and are set for each command
// where no control group does better; so is the one for open files, of which init has more.
func Resources(l box.Limits) []Resource {
	return []Resource{
		{"core", unix.RLIMIT_CORE, 1}, // at 0 the kernel would still start a program of the host's, see seccomp
		{"fsize", unix.RLIMIT_FSIZE, uint64(l.FileBytes)},
		{"nofile", unix.RLIMIT_NOFILE, uint64(l.OpenFiles) + ownFiles},
		{"memlock", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"msgqueue", unix.RLIMIT_MSGQUEUE, 1 << 20},
		{"sigpending", unix.RLIMIT_SIGPENDING, 4096},
	}
}

// Limit lowers the limits of a sandbox in which nothing runs yet. A process may do
// that to another one of its own user without any privilege, so this runs with
// the credentials of the sandbox's owner; root does not do, where it lacks the
// capability for resources.
func Limit(pid int, o box.Owner, all []Resource) error {
	return As(o, func() error {
		for _, r := range all {
			var old unix.Rlimit
			if err := unix.Prlimit(pid, r.ID, nil, &old); err != nil {
				return fmt.Errorf("read limit %s: %w", r.Name, err)
			}
			value := min(r.Value, old.Max)
			if err := unix.Prlimit(pid, r.ID, &unix.Rlimit{Cur: value, Max: value}, nil); err != nil {
				return fmt.Errorf("set limit %s: %w", r.Name, err)
			}
		}
		return nil
	})
}
