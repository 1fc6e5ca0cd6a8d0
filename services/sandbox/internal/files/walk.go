package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// Limits of a walk. A workspace can hold more; the rest is reported as left out.
const (
	maxVisited = 1_000_000
	maxDepth   = 256
)

// errStop ends a walk early.
var errStop = errors.New("stop")

// Why a walk leaves a file out, after its name.
var (
	errTooDeep = fmt.Errorf("is nested more than %d directories deep: move it up, or remove it", maxDepth)
	errTooMany = fmt.Errorf("is beyond the first %d files: remove some", maxVisited)
)

// visitor sees each file of a walk: its open directory, its name there and its path from the workspace.
type visitor func(dir *os.File, last, name string, st *unix.Stat_t) error

// walker walks a tree by path, following no link.
type walker struct {
	ctx     context.Context //nolint:containedctx // lives as long as one walk
	visit   visitor
	skip    func(last, name string) bool // directories not to enter
	types   bool                         // visit needs only the type of a status
	visited int
	partial bool // something was left out
	root    string
	rules   *Rules

	// closed also enters directories that a command has closed to the service, if both have the same user.
	closed bool
	// refuse decides whether a file may be left out; nil allows it.
	refuse func(name string, why error) error
}

// leave leaves a file out.
func (w *walker) leave(name string, why error) error {
	w.partial = true
	if w.refuse == nil {
		return nil
	}
	return w.refuse(name, why)
}

// walk visits everything below a directory.
func (w *walker) walk(dir *os.File, name string, depth int) error {
	entries, err := readEntries(int(dir.Fd()))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	slices.SortFunc(entries, func(a, b dirEntry) int { return strings.Compare(a.name, b.name) })
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if w.visited++; w.visited > maxVisited {
			return cmp.Or(w.leave(path.Join(name, e.name), errTooMany), errStop)
		}
		if err := w.entry(dir, e, path.Join(name, e.name), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(dir *os.File, e dirEntry, name string, depth int) error {
	if w.rules.denies(w.root, name) {
		return nil
	}
	st, last := unix.Stat_t{Mode: e.mode}, e.name
	if !w.types || e.mode == 0 {
		if err := w.status(int(dir.Fd()), last, &st); err != nil {
			if vanished(err) {
				return nil
			}
			return w.leave(name, err)
		}
	}
	if err := w.visit(dir, last, name, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || w.skip(last, name) {
		return nil
	}
	if depth >= maxDepth {
		return w.leave(name, errTooDeep)
	}
	return w.enter(dir, last, name, st.Mode, depth)
}

// enter walks a directory in another one.
func (w *walker) enter(dir *os.File, last, name string, mode uint32, depth int) error {
	fd, back, err := w.open(int(dir.Fd()), last, mode)
	switch {
	case vanished(err):
		return nil
	case err != nil:
		return w.leave(name, err)
	}
	defer back()
	sub := os.NewFile(uintptr(fd), name)
	defer func() { _ = sub.Close() }()
	return w.walk(sub, name, depth+1)
}

// open opens a directory in another one until back is called.
func (w *walker) open(dir int, last string, mode uint32) (fd int, back func(), err error) {
	if w.closed {
		return rights.Folder(dir, last, mode)
	}
	fd, err = unix.Openat(dir, last, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	return fd, func() {}, err
}

// status reads the status of a file in a directory.
func (w *walker) status(dir int, last string, st *unix.Stat_t) error {
	if w.closed { // with the mode that a command gave it
		return rights.Stat(dir, last, st)
	}
	return unix.Fstatat(dir, last, st, unix.AT_SYMLINK_NOFOLLOW)
}

// dirEntry is a directory's entry of a file.
type dirEntry struct {
	name string
	mode uint32 // only the bits of the type; 0 if the file system does not report it
}

// readEntries reads a directory. Package os would query the status, by path, of entries for which the file
// system reports no type.
func readEntries(fd int) (all []dirEntry, err error) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := unix.ReadDirent(fd, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return all, err
		case n == 0:
			return all, nil
		}
		for rest := buffer[:n]; len(rest) > 19; { // a linux_dirent64
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			name, _, _ := bytes.Cut(rest[19:size], []byte{0})
			if s := string(name); s != "." && s != ".." {
				all = append(all, dirEntry{s, uint32(rest[18]) << 12}) // the types are those of the mode, see inode(7)
			}
			rest = rest[size:]
		}
	}
}

// maxAlternatives limits the product of a pattern's alternatives: a matcher tries each combination.
const maxAlternatives = 1024

// checkPattern checks a pattern of names in the form of package filename.
func checkPattern(p string) error {
	if !doublestar.ValidatePattern(p) {
		return fmt.Errorf("%w: %s: `[`, `{` and `\\` must be closed or followed by something", ErrPattern, filename.Decode(p))
	}
	if strings.Count(p, "{") > 16 || filename.Alternatives(p, maxAlternatives) > maxAlternatives {
		return fmt.Errorf("%w: %s has too many alternatives", ErrPattern, filename.Decode(p))
	}
	return nil
}
