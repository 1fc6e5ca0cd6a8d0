package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"
)

// GrepMode says what a search sends.
type GrepMode int

// Modes of a search.
const (
	GrepLines GrepMode = iota
	GrepFiles
	GrepCount
)

// Bounds of a search.
const (
	maxGrepText    = 2000      // bytes sent of a line
	maxGrepLine    = 1 << 20   // bytes looked at of a line
	maxGrepWhole   = 32 << 20  // bytes looked at of a file whose matches may span lines
	maxGrepMatches = 1_000_000 // in a file whose matches may span lines
	binarySniffed  = 8 << 10
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
}

// Grep searches files by path and line, and sends what it finds. It leaves out
// binary files and everything below `.git`, and tells whether there is more.
func (t *Tree) Grep(ctx context.Context, q GrepQuery, send func(GrepMatch) error) (bool, error) {
	re, err := q.compile()
	if err != nil {
		return false, err
	}
	name, err := Clean(q.Path)
	if err != nil {
		return false, err
	}
	if q.Glob != "" {
		if err := checkPattern(q.Glob); err != nil {
			return false, err
		}
	}
	g := &grep{ctx: ctx, q: q, re: re, send: send, root: name}
	if f, st, err := t.regular(name); err == nil {
		defer func() { _ = f.Close() }()
		err = g.file(f, name, &st)
		return g.more, ignoreStop(err)
	}
	dir, err := t.directory(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }()
	w := &walker{ctx: ctx, skip: func(last string) bool { return last == ".git" }, visit: g.visit}
	err = ignoreStop(w.walk(dir, name, 0))
	return g.more || w.partial, err
}

func ignoreStop(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (q GrepQuery) compile() (*regexp.Regexp, error) {
	flags := "m"
	if q.IgnoreCase {
		flags += "i"
	}
	if q.Multiline {
		flags += "s"
	}
	re, err := regexp.Compile("(?" + flags + ")" + q.Pattern)
	if err != nil {
		var se *syntax.Error
		if errors.As(err, &se) {
			return nil, fmt.Errorf("%w: %s: the syntax is RE2's", ErrPattern, se.Error())
		}
		return nil, fmt.Errorf("%w: %w", ErrPattern, err)
	}
	return re, nil
}

type grep struct {
	ctx  context.Context //nolint:containedctx // lives as long as one search
	q    GrepQuery
	re   *regexp.Regexp
	send func(GrepMatch) error
	root string
	sent int
	more bool
}

func (g *grep) visit(dir *os.File, last, name string, st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT != unix.S_IFREG || !g.wanted(last, name) {
		return nil
	}
	fd, err := unix.Openat(int(dir.Fd()), last, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // it vanished, or is closed
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	if err := unix.Fstat(fd, st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	return g.file(f, name, st)
}

// wanted matches the glob as ripgrep does: one without a slash may match at any
// depth.
func (g *grep) wanted(last, name string) bool {
	if g.q.Glob == "" {
		return true
	}
	pattern := strings.TrimPrefix(g.q.Glob, "./")
	if !strings.Contains(pattern, "/") && doublestar.MatchUnvalidated(pattern, last) {
		return true
	}
	return doublestar.MatchUnvalidated(pattern, beneath(g.root, name)) || doublestar.MatchUnvalidated(pattern, name)
}

func (g *grep) file(f *os.File, name string, st *unix.Stat_t) error {
	src := bufio.NewReaderSize(io.LimitReader(f, st.Size), 64<<10)
	head, err := src.Peek(binarySniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil // it cannot be read
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	s := &scan{grep: g, name: path.Clean(name)}
	if g.q.Multiline {
		err = s.whole(src)
	} else {
		err = s.lines(src)
	}
	if err != nil {
		return err
	}
	if g.q.Mode == GrepCount && s.count > 0 {
		return g.emit(GrepMatch{Path: s.name, Count: s.count})
	}
	return nil
}

// emit sends a match, or ends the search when there were enough.
func (g *grep) emit(m GrepMatch) error {
	if g.sent >= g.q.Max {
		g.more = true
		return errStop
	}
	g.sent++
	return g.send(m)
}
