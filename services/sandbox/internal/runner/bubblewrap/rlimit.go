package bubblewrap

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/warm"
)

// limit lowers the limits of a sandbox that waits to be let go. A process may do
// that to another one of its own user without any privilege, so this runs with
// the credentials of the sandbox's owner; root does not do, where it lacks the
// capability for resources.
func limit(pid int, o box.Owner, all []warm.Resource) error {
	return warm.As(o, func() error {
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
