package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// Status is how a file differs.
type Status uint8

// Statuses.
const (
	Added Status = iota + 1
	Deleted
	Modified
	ModeChanged
	TypeChanged
)

// Change is a file that differs.
type Change struct {
	Path          string
	Status        Status
	Before, After *Entry // nil if the file is missing there
	Binary        bool
	Unified       string
	// Truncated means that Unified was left out or cut because of its size.
	Truncated bool
}

// Bounds of a diff.
const (
	maxCompared = 1 << 20   // of each file
	maxDiff     = 256 << 10 // of each file's diff
	maxAnswer   = 2 << 20   // of all together
)

// DiffRequest describes what to compare.
type DiffRequest struct {
	From    string
	To      string // empty for the tree's current state
	Path    string // only this file or directory; empty for all
	After   string // only paths after this one
	Unified bool
	Most    int // most changes
}

// side is one of two states.
type side struct {
	entries []Entry
	read    func(Entry) ([]byte, error)
}

// Diff compares two states, in the order of paths with the slash as the lowest byte. more reports whether
// there are further changes.
func (s *Store) Diff(ctx context.Context, t *Tree, r DiffRequest) (changes []Change, more bool, err error) {
	from, err := s.side(r.From)
	if err != nil {
		return nil, false, err
	}
	to, err := s.other(ctx, t, r.To)
	if err != nil {
		return nil, false, err
	}
	told := 0
	for _, c := range compareEntries(from.entries, to.entries) {
		if r.After != "" && !before(r.After, c.Path) || r.Path != "" && c.Path != r.Path && !below(c.Path, r.Path) {
			continue
		}
		if len(changes) == r.Most {
			return changes, true, nil
		}
		if r.Unified {
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			left := maxAnswer - told
			if err := c.explain(from, to, left); err != nil {
				return nil, false, err
			}
			if told += len(c.Unified); c.Truncated && left < maxDiff {
				told = maxAnswer // almost full counts as full
			}
		}
		changes = append(changes, c)
	}
	return changes, false, nil
}

func (s *Store) side(id string) (side, error) {
	r, err := s.Get(id)
	if err != nil {
		return side{}, err
	}
	entries, err := s.entries(r.Root)
	return side{entries: entries, read: s.content}, err
}

func (s *Store) other(ctx context.Context, t *Tree, id string) (side, error) {
	if id != "" {
		return s.side(id)
	}
	now, err := s.look(ctx, t, justHash)
	if err != nil {
		return side{}, err
	}
	return side{entries: now.entries, read: t.content}, nil
}

// compareEntries returns the differences between two ordered lists.
func compareEntries(from, to []Entry) []Change {
	var changes []Change
	for len(from) > 0 || len(to) > 0 {
		switch {
		case len(to) == 0 || len(from) > 0 && before(from[0].Path, to[0].Path):
			changes = append(changes, Change{Path: from[0].Path, Status: Deleted, Before: &from[0]})
			from = from[1:]
		case len(from) == 0 || before(to[0].Path, from[0].Path):
			changes = append(changes, Change{Path: to[0].Path, Status: Added, After: &to[0]})
			to = to[1:]
		default:
			if !from[0].same(to[0]) {
				changes = append(changes, Change{Path: to[0].Path, Status: differs(&from[0], &to[0]), Before: &from[0], After: &to[0]})
			}
			from, to = from[1:], to[1:]
		}
	}
	return changes
}

func differs(a, b *Entry) Status {
	switch {
	case a.Kind != b.Kind:
		return TypeChanged
	case a.Hash != b.Hash || a.Size != b.Size || a.Target != b.Target:
		return Modified
	}
	return ModeChanged
}

// explain sets how the contents differ, in at most most bytes. If most is zero, it does not compare, which
// would take hundreds of times the files' size.
func (c *Change) explain(from, to side, most int) error {
	before, tooLarge, err := text(c.Before, from.read)
	if err != nil {
		return err
	}
	after, large, err := text(c.After, to.read)
	if err != nil {
		return err
	}
	switch {
	case c.Status == ModeChanged || bytes.Equal(before, after) && !tooLarge && !large:
		return nil
	case isBinary(before) || isBinary(after):
		c.Binary = true
		return nil
	case tooLarge || large || most <= 0:
		c.Truncated = true
		return nil
	}
	old, now := c.Before.header("a/"), c.After.header("b/")
	c.Unified, c.Truncated = cut(udiff.Unified(old, now, string(before), string(after)), min(most, maxDiff))
	return nil
}

// header returns the name that a unified diff gives one side of a change.
func (e *Entry) header(prefix string) string {
	switch {
	case e == nil || e.Kind == Directory: // it has no contents
		return "/dev/null"
	case strings.ContainsFunc(e.Path, ambiguous):
		return quote(prefix + e.Path)
	}
	return prefix + filename.Encode(e.Path)
}

// ambiguous reports whether some readers may take a character for the end of a line, or of a quoted name.
func ambiguous(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '"' || r == '\\'
}

// quote writes a name with ambiguous characters as Git does: as a C string.
func quote(name string) string {
	const escapes = "abtnvfr" // of the bytes from 7 on
	b := []byte{'"'}
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		raw := name[:size]
		name = name[size:]
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', raw[0])
		case r >= '\a' && r <= '\r':
			b = append(b, '\\', escapes[r-'\a'])
		case ambiguous(r) || r == utf8.RuneError && size == 1:
			for _, c := range []byte(raw) {
				b = fmt.Appendf(b, "\\%03o", c)
			}
		default:
			b = append(b, raw...)
		}
	}
	return string(append(b, '"'))
}

// cut shortens a text to whole lines.
func cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	return text[:strings.LastIndexByte(text[:max(most, 0)], '\n')+1], true
}

// text returns the content of a file to compare: the first bytes if the file is too large.
func text(e *Entry, read func(Entry) ([]byte, error)) (b []byte, tooLarge bool, err error) {
	switch {
	case e == nil || e.Kind == Directory:
		return nil, false, nil
	case e.Kind == Symlink:
		return []byte(e.Target), false, nil
	}
	b, err = read(*e)
	return b, e.Size > maxCompared, err
}

// isBinary reports whether content is not text.
func isBinary(b []byte) bool {
	head := b[:min(len(b), 8000)]
	return bytes.IndexByte(head, 0) >= 0 || len(b) <= maxCompared && !utf8.Valid(b)
}

// content reads a file's first bytes from the store.
func (s *Store) content(e Entry) ([]byte, error) {
	if e.Size <= chunkSize {
		return s.packs.read(e.Hash)
	}
	chunks, err := s.chunks(e)
	if err != nil {
		return nil, err
	}
	return s.chunk(chunks[0], chunkSize)
}

// content reads a file's first bytes from the workspace. A file that has vanished since is empty.
func (t *Tree) content(e Entry) ([]byte, error) {
	f, shut, err := t.openRegular(e.Path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, errNotRegular) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %.200s: %w", e.Path, asChanged(err))
	}
	defer func() { _ = f.Close() }()
	defer shut()
	return io.ReadAll(io.LimitReader(f, min(e.Size, maxCompared)))
}
