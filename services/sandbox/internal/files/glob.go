package files

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// Glob finds files by pattern below a directory, the last changed first. It follows no link, and reports
// whether there are more than limit.
func (t *Tree) Glob(ctx context.Context, pattern, name string, limit int) ([]Info, bool, error) {
	name, err := Clean(name)
	if err != nil {
		return nil, false, err
	}
	wanted, err := relativePattern(pattern, name)
	if err != nil {
		return nil, false, err
	}
	dir, err := t.directory(name)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = dir.Close() }()
	g := &glob{ctx: ctx, pattern: wanted, root: name, limit: limit, rules: t.Rules}
	if err := g.walk(dir, name, nil); err != nil {
		return nil, false, err
	}
	return g.result()
}

// glob is one search by pattern.
type glob struct {
	ctx     context.Context //nolint:containedctx // lives as long as one search
	pattern reading
	root    string
	limit   int
	rules   *Rules
	found   []Info
	partial bool
}

// walk searches below an open directory, whose path is name, but not in mounts.
func (g *glob) walk(dir *os.File, name string, mounts func(string) bool) error {
	w := &walker{ctx: g.ctx, root: g.root, rules: g.rules, skip: func(_, name string) bool { return mounts != nil && mounts(name) }}
	w.visit = func(dir *os.File, last, full string, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT == unix.S_IFDIR || !g.pattern.match(filename.Encode(beneath(g.root, full))) {
			return nil
		}
		i, err := describe(int(dir.Fd()), last, full)
		if err != nil {
			return nil //nolint:nilerr // it vanished
		}
		g.found = append(g.found, i)
		if len(g.found) >= 2*g.limit+1024 { // bound the memory, whatever matches
			g.found, w.partial = g.newest(), true
		}
		return nil
	}
	err := w.walk(dir, name, 0)
	g.partial = g.partial || w.partial
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (g *glob) result() ([]Info, bool, error) {
	if len(g.found) == 0 && g.pattern.fault != nil {
		return nil, false, g.pattern.fault
	}
	return g.newest(), g.partial || len(g.found) > g.limit, nil
}

// newest returns the files that changed last, after the file that the pattern names literally.
func (g *glob) newest() []Info {
	named := path.Join(g.root, filename.Decode(g.pattern.text))
	after := func(i Info) int {
		if i.Path == named {
			return 0
		}
		return 1
	}
	slices.SortFunc(g.found, func(a, b Info) int {
		return cmp.Or(after(a)-after(b), b.Modified.Compare(a.Modified), strings.Compare(a.Path, b.Path))
	})
	return g.found[:min(len(g.found), g.limit)]
}

// relativePattern makes a pattern relative to the searched directory. The pattern may also be an absolute
// path below it.
func relativePattern(pattern, dir string) (reading, error) {
	if strings.ContainsRune(pattern, 0) {
		return reading{}, ErrPattern
	}
	if path.IsAbs(pattern) {
		base := strings.TrimSuffix(filename.Encode(absolute(dir)), "/")
		rest, ok := strings.CutPrefix(pattern, base+"/")
		if !ok {
			return reading{}, ErrEscapes
		}
		pattern = rest
	}
	return readPattern(strings.TrimPrefix(pattern, "./")), nil
}

// absolute returns the path in a sandbox of a clean path.
func absolute(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(mount, name)
}

// beneath returns the path of name in a directory.
func beneath(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}
