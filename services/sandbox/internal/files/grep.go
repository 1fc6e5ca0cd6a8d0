package files

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// GrepMode is what a search sends.
type GrepMode int

// Modes of a search.
const (
	GrepLines GrepMode = iota
	GrepFiles
	GrepCount
)

// Limits of a search.
const (
	maxGrepText    = 2000      // bytes sent of a line, around the match
	maxGrepLine    = 1 << 20   // bytes searched of a line of a file that is larger than maxGrepWhole
	maxGrepWhole   = 32 << 20  // bytes of a file that is searched at once
	maxGrepMatches = 1_000_000 // in a file whose matches may span lines
	binarySniffed  = 8 << 10
	grepAhead      = 64 // files that are open before their turn
	grepPiece      = 64 // matches that are passed on at once
	maxGrepWorkers = 4  // files that are searched at the same time
)

// GrepQuery is a search.
type GrepQuery struct {
	Pattern, Path, Glob   string
	IgnoreCase, Multiline bool
	Before, After         int
	Max                   int // lines, files or counts
	Mode                  GrepMode
}

// GrepMatch is a line, a file or a count.
type GrepMatch struct {
	Path    string
	Line    int64
	Text    []byte
	Context bool
	Count   int64
	// CutBefore and CutAfter are how many bytes of the line were left out before and after the text.
	CutBefore, CutAfter int64
}

// Grep searches files in the order of paths and lines, and sends its matches. It leaves out binary files
// and everything below `.git`, and reports whether there is more. It searches several files at a time, but
// only one goroutine calls send.
func (t *Tree) Grep(ctx context.Context, q GrepQuery, send func(GrepMatch) error) (bool, error) {
	g, err := q.begin(t.Rules)
	if err != nil {
		return false, err
	}
	g.search = func(ctx context.Context) error { return g.walk(ctx, t, g.root, g.root, nil) }
	return g.run(ctx, send)
}

// begin checks a search.
func (q GrepQuery) begin(rules *Rules) (*grep, error) {
	p, err := q.compile()
	if err != nil {
		return nil, err
	}
	name, err := clean(q.Path)
	if err != nil {
		return nil, err
	}
	q.Glob = strings.TrimPrefix(q.Glob, "./")
	return &grep{q: q, pattern: p, glob: readPattern(q.Glob), root: name, rules: rules, jobs: make(chan *grepJob, grepAhead), order: make(chan *grepJob, grepAhead)}, nil
}

// grep is a search. One goroutine walks and opens files, several search them, and the caller's sends the
// matches in the order of the walk.
type grep struct {
	search  func(context.Context) error // walks the files to search
	q       GrepQuery
	glob    reading
	globbed bool // the walk found a file that matches the glob; valid after its end
	pattern *pattern
	root    string
	rules   *Rules
	jobs    chan *grepJob // to be searched, in the same order as below, so that the first one is always in progress
	order   chan *grepJob // to be sent
	partial bool          // the walk left something out; valid after its end
}

// grepJob is one file.
type grepJob struct {
	fd    int
	name  string
	size  int64
	found chan []GrepMatch // closed at the end
	more  bool             // something was left out; valid once found is closed
}

func (g *grep) run(ctx context.Context, send func(GrepMatch) error) (more bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		defer close(g.jobs)
		defer close(g.order)
		return g.search(ctx)
	})
	for range min(runtime.GOMAXPROCS(0), maxGrepWorkers) {
		work.Go(func() error {
			s := scan{pattern: g.pattern}
			for j := range g.jobs { // take all jobs, so that all files are closed
				s.search(ctx, g, j)
			}
			return nil
		})
	}
	more, err = g.deliver(ctx, send)
	stop()
	fault := work.Wait()
	switch {
	case more && err == nil: // the other errors only say that their goroutines were stopped
		return true, nil
	case fault != nil && !errors.Is(fault, context.Canceled):
		return false, fault
	case err == nil && g.q.Glob != "" && !g.globbed && g.glob.fault != nil:
		return false, g.glob.fault
	}
	return g.partial, err
}

// deliver sends the matches, up to the maximum.
func (g *grep) deliver(ctx context.Context, send func(GrepMatch) error) (more bool, err error) {
	sent := 0
	for j := range g.order {
		for open := true; open; {
			var found []GrepMatch
			select {
			case found, open = <-j.found:
			case <-ctx.Done():
				return false, ctx.Err()
			}
			for _, m := range found {
				if sent >= g.q.Max {
					return true, nil
				}
				sent++
				if err := send(m); err != nil {
					return false, err
				}
			}
		}
		more = more || j.more
	}
	return more, ctx.Err()
}

// walk opens the files to search: those of a tree at place, whose path is name, except those in mounts.
func (g *grep) walk(ctx context.Context, t *Tree, place, name string, mounts func(string) bool) error {
	f, st, err := t.regular(place)
	if err == nil {
		defer func() { _ = f.Close() }()
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return g.hand(ctx, &grepJob{fd: fd, name: name, size: st.Size})
	}
	dir, none := t.directory(place)
	if none != nil {
		return err // the reason why it is no regular file says more
	}
	defer func() { _ = dir.Close() }()
	w := &walker{ctx: ctx, root: g.root, rules: g.rules, types: true, skip: func(last, name string) bool {
		return last == ".git" || mounts != nil && mounts(name)
	}}
	w.visit = func(dir *os.File, last, name string, st *unix.Stat_t) error { return g.visit(ctx, dir, last, name, st) }
	err = w.walk(dir, name, 0)
	g.partial = g.partial || w.partial
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (g *grep) visit(ctx context.Context, dir *os.File, last, name string, st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT != unix.S_IFREG || !g.included(last, name) {
		return nil
	}
	fd, err := unix.Openat(int(dir.Fd()), last, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil //nolint:nilerr // it vanished or is closed
	}
	if err := unix.Fstat(fd, st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.Close(fd)
	}
	return g.hand(ctx, &grepJob{fd: fd, name: name, size: st.Size})
}

// hand passes a file to the searchers and to the sender.
func (g *grep) hand(ctx context.Context, j *grepJob) error {
	j.found = make(chan []GrepMatch, 4)
	for _, to := range []chan *grepJob{g.order, g.jobs} {
		select {
		case to <- j:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), unix.Close(j.fd))
		}
	}
	return nil
}

// included matches the glob as ripgrep does: a glob without a slash may match at any depth.
func (g *grep) included(last, name string) bool {
	if g.q.Glob == "" {
		return true
	}
	match := !strings.Contains(g.q.Glob, "/") && g.glob.match(filename.Encode(last)) ||
		g.glob.match(filename.Encode(beneath(g.root, name))) || g.glob.match(filename.Encode(name))
	g.globbed = g.globbed || match
	return match
}
