package mount

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// coverMode lets all commands read.
const coverMode = 0o755

// MakeCover returns a folder that holds only places for mounts, each a path in it, below an existing folder.
// In a sandbox that shows it read-only, commands cannot rename the mounts in it. The same owner and places give the same folder, which is made once. Concurrent calls are safe.
func MakeCover(in, owner string, places []string) (string, error) {
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
	if st, err := os.Lstat(dir); err == nil && st.Mode() == os.ModeDir|coverMode {
		return nil
	}
	if err := os.Mkdir(dir, coverMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(dir, coverMode) // regardless of the service's umask
}
