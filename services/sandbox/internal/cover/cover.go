// Package cover makes folders that hold only places for mounts. In a sandbox that shows one read-only,
// commands find the mounts in it and cannot rename them.
package cover

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mode lets all commands read.
const mode = 0o755

// Make returns a folder with some places, each a path in it, below an existing folder. The same owner and
// places give the same folder, which is made once. Concurrent calls are safe.
func Make(in, owner string, places []string) (string, error) {
	places = slices.Sorted(slices.Values(places))
	id := sha256.Sum256([]byte(owner + "\x00" + strings.Join(places, "\x00")))
	dir := filepath.Join(in, hex.EncodeToString(id[:8]))
	if err := makeOpen(dir); err != nil {
		return "", err
	}
	for _, place := range places {
		at := dir
		for part := range strings.SplitSeq(place, "/") {
			at = filepath.Join(at, part)
			if err := makeOpen(at); err != nil {
				return "", err
			}
		}
	}
	return dir, nil
}

// makeOpen makes a folder that all users may read, unless it exists.
func makeOpen(dir string) error {
	if st, err := os.Lstat(dir); err == nil && st.Mode() == os.ModeDir|mode {
		return nil
	}
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(dir, mode) // regardless of the service's umask
}
