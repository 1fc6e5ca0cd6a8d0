package pool

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// helpers is how many threads of a sandbox are init's; for a sandbox elsewhere this includes those of the
// relay.
const (
	helpers       = 12
	remoteHelpers = 28
)

func (s *sandbox) helpers() uint64 {
	if s.elsewhere() {
		return remoteHelpers
	}
	return helpers
}

// ownFiles is how many more files init may have than commands. A user's files in transit in sockets are
// limited by the open files of the sending process. Otherwise commands could use up the limit, and init
// could not pass processes on.
const ownFiles = 4096

// Resource is a limit on each process.
type Resource struct {
	Name  string // as setrlimit(2) has it: RLIMIT_CORE is `core`
	ID    int
	Value uint64
}

// Resources returns the process limits of everything in a sandbox. The limits of memory and of the number
// of processes are not init's: they are set for each command if no control group limits these. The limit of
// open files is per command as well, because init has more.
func Resources(l box.Limits) []Resource {
	return []Resource{
		{"core", unix.RLIMIT_CORE, 1}, // at 0 the kernel would still start a program of the host, see seccomp
		{"fsize", unix.RLIMIT_FSIZE, uint64(l.FileBytes)},
		{"nofile", unix.RLIMIT_NOFILE, uint64(l.OpenFiles) + ownFiles},
		{"memlock", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"msgqueue", unix.RLIMIT_MSGQUEUE, 1 << 20},
		{"sigpending", unix.RLIMIT_SIGPENDING, 4096},
	}
}

// lowerLimits sets lower limits for an unused sandbox.
func (s *sandbox) lowerLimits(l box.Limits) error {
	if s.elsewhere() {
		return errors.New("the limits of a sandbox elsewhere do not change")
	}
	if s.group != nil {
		if err := s.group.Limit(groupOf(l)); err != nil {
			return err
		}
	}
	return Limit(s.hold.pid, s.spec.Owner, Resources(l))
}

// Limit lowers the limits of a sandbox in which nothing runs yet. A process may do that to another one of
// its own user without privilege, so this runs with the credentials of the sandbox's owner. Root may lack
// the capability for resources.
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
