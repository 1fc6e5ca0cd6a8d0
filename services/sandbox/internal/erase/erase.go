// Package erase deletes what commands have made.
package erase

import (
	"errors"
	"os"
	"path/filepath"
)

// All deletes a tree that nobody can reach any more. A command may have taken the
// owner's right to look into its own folders or to change them, which matters when the
// service is that owner.
func All(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a directory needs the right to search
		}
		return nil
	})
	return os.RemoveAll(dir)
}
