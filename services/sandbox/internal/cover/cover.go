// Package cover makes folders with nothing but places for mounts. Who is shown one, closed to
// changes, finds there the mounts that lie in it, and can give none of them another name.
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

// mode lets every command look.
const mode = 0o755

// Make returns the folder with some places, each a path in it, below a folder that is there. For
// the same owner and the same places it is the same, and is made once; it may be made by several at
// a time.
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

// makeOpen makes a folder that everybody may look into, if there is none.
func makeOpen(dir string) error {
	if st, err := os.Lstat(dir); err == nil && st.Mode() == os.ModeDir|mode {
		return nil
	}
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(dir, mode) // whatever the mask is with which the service was started
}
