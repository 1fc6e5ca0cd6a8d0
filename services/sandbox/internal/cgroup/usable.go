package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Usable returns why Open cannot work, as far as that is visible without changes.
func Usable(root string) error {
	if !isV2(root) {
		for _, c := range controllers1 {
			if err := writable(filepath.Join(root, c), "cgroup.procs"); err != nil {
				return fmt.Errorf("controller %q of version 1: %w", c, err)
			}
		}
		return nil
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	dir := findPlace(root, string(self)).dir
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range controllers2 {
		if !slices.Contains(strings.Fields(string(raw)), c) {
			return fmt.Errorf("the group %s has no controller %q", dir, c)
		}
	}
	return writable(dir, "cgroup.subtree_control")
}

// writable returns why groups cannot be made in a folder; a group contains file.
func writable(dir, file string) error {
	if err := unix.Access(filepath.Join(dir, file), unix.F_OK); err != nil {
		return &os.PathError{Op: "find", Path: filepath.Join(dir, file), Err: err}
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &os.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}
