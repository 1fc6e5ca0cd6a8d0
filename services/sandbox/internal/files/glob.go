package files

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"
)

// Glob finds files by pattern below a directory, the last changed first. It
// follows no link, and says whether there are more than limit.
func (t *Tree) Glob(ctx context.Context, pattern, name string, limit int) ([]Info, bool, error) {
	name, err := Clean(name)
	if err != nil {
		return nil, false, err
	}
	if pattern, err = relativePattern(pattern, name); err != nil {
		return nil, false, err
	}
	dir, err := t.directory(name)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = dir.Close() }()
	var found []Info
	w := &walker{ctx: ctx, skip: func(string) bool { return false }}
	w.visit = func(dir *os.File, last, full string, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT == unix.S_IFDIR || !doublestar.MatchUnvalidated(pattern, beneath(name, full)) {
			return nil
		}
		i, err := describe(int(dir.Fd()), last, full)
		if err != nil {
			return nil //nolint:nilerr // it vanished
		}
		found = append(found, i)
		if len(found) >= 2*limit+1024 { // memory is bounded, whatever matches
			found, w.partial = newest(found, limit), true
		}
		return nil
	}
	if err := w.walk(dir, name, 0); err != nil && !errors.Is(err, errStop) {
		return nil, false, err
	}
	more := w.partial || len(found) > limit
	return newest(found, limit), more, nil
}

func newest(all []Info, limit int) []Info {
	slices.SortFunc(all, func(a, b Info) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Path, b.Path))
	})
	return all[:min(len(all), limit)]
}

// relativePattern makes a pattern relative to the directory that is searched; one
// may also be given as an absolute path below it.
func relativePattern(pattern, dir string) (string, error) {
	if strings.ContainsRune(pattern, 0) {
		return "", ErrPattern
	}
	if path.IsAbs(pattern) {
		base := strings.TrimSuffix(path.Join(mount, dir), "/")
		rest, ok := strings.CutPrefix(pattern, base+"/")
		if !ok {
			return "", ErrEscapes
		}
		pattern = rest
	}
	pattern = strings.TrimPrefix(pattern, "./")
	return pattern, checkPattern(pattern)
}

// beneath is a path from a directory.
func beneath(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}
