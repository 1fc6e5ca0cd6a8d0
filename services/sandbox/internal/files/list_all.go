package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ListAll lists everything below a directory: each directory before its contents, names in order. It begins
// after a path, and reports whether there are more than limit files. It follows no link and enters no mount
// below the directory.
func (s *Space) ListAll(ctx context.Context, name, after string, limit int, ignore []string) ([]Info, bool, error) {
	full, m, rest, err := s.find(name)
	if err != nil {
		return nil, false, err
	}
	skip, err := readPatterns(ignore)
	if err != nil {
		return nil, false, err
	}
	l := &lister{after: after, limit: limit, ignore: skip, mounts: s.isMountPoint}
	err = s.top(m, func(t *Tree) error {
		dir, err := t.directory(rest)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
		w := &walker{ctx: ctx, root: full, rules: s.Rules, types: true, visit: l.visit, skip: l.skip, refuse: refuseHuge(full)}
		return w.walk(dir, full, 0)
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, false, err
	}
	return l.found, l.more, nil
}

// refuseHuge ends the list of a directory that has too many files. Other files that cannot be seen are left
// out.
func refuseHuge(dir string) func(string, error) error {
	return func(_ string, why error) error {
		if errors.Is(why, errTooMany) {
			return fmt.Errorf("%w: %s has more than %d files below it: list a directory in it", ErrTooLarge, dir, maxVisited)
		}
		return nil
	}
}

// lister collects one page of a recursive list.
type lister struct {
	after  string
	limit  int
	ignore []reading
	mounts func(string) bool
	found  []Info
	more   bool
}

func (l *lister) visit(dir *os.File, last, name string, _ *unix.Stat_t) error {
	if !walksBefore(l.after, name) || ignored(l.ignore, last, name) {
		return nil
	}
	if len(l.found) == l.limit {
		l.more = true
		return errStop
	}
	if i, err := describe(int(dir.Fd()), last, name); err == nil { // otherwise it vanished
		l.found = append(l.found, i)
	}
	return nil
}

// skip leaves out directories whose contents were listed before.
func (l *lister) skip(last, name string) bool {
	listed := walksBefore(name, l.after) && !strings.HasPrefix(l.after, name+"/")
	return listed || l.mounts(name) || ignored(l.ignore, last, name)
}

// walksBefore reports whether a walk visits a before b.
func walksBefore(a, b string) bool {
	return strings.ReplaceAll(a, "/", "\x00") < strings.ReplaceAll(b, "/", "\x00")
}
