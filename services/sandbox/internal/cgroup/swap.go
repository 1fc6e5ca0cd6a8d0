package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// swaps is the kernel's list of swap areas.
const swaps = "/proc/swaps"

// closeSwap limits a group's swap by writing value to file; otherwise the group could use more memory than
// its limit. A kernel that does not account for swap has no such file. That is an error only if the
// machine's list shows swap areas.
func closeSwap(dir, file, value, list string) error {
	if unix.Access(filepath.Join(dir, file), unix.F_OK) == nil {
		return write(dir, file, value)
	}
	raw, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // there is none where the kernel cannot swap
		return fmt.Errorf("look whether the machine swaps: %w", err)
	}
	if bytes.Count(raw, []byte("\n")) > 1 { // below the line with the columns' names
		return fmt.Errorf("memory cannot be bounded: this machine has swap (%s), and its kernel does not account for it, because there is no %s;  "+
			"start the kernel with swapaccount=1, or turn swap off (swapoff -a)", list, file)
	}
	return nil
}
