package bubblewrap

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
)

// boundTerminals bounds the pseudo-terminals of a sandbox whose first process, of which
// it takes a descriptor, runs. Bubblewrap has no option for it, and it needs root.
func boundTerminals(init int) error {
	options := fmt.Sprintf("mode=620,ptmxmode=666,max=%d", rootfs.Terminals)
	err := bind.In(init, func() error {
		return unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NOEXEC, options)
	})
	if err != nil {
		return fmt.Errorf("bound the sandbox's terminals: %w", err)
	}
	return nil
}
