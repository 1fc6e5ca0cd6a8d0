package files

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"
)

// SimilarError is ErrNotFound where a file exists whose name differs only in its
// Unicode form: an é can be one character or two.
type SimilarError struct {
	Name    string
	Similar string // relative to the workspace
}

func (e *SimilarError) Error() string {
	return fmt.Sprintf("%s: %s; %s differs from it only in its Unicode form", ErrNotFound, e.Name, e.Similar)
}

// Unwrap returns ErrNotFound.
func (e *SimilarError) Unwrap() error { return ErrNotFound }

// orSimilar turns an error of a name that is not found into a SimilarError if it can.
func (t *Tree) orSimilar(name string, err error) error {
	if !errors.Is(err, ErrNotFound) || !isWide(name) {
		return err
	}
	if other := t.similar(name); other != "" {
		return &SimilarError{path.Join(t.alias, name), path.Join(t.alias, other)}
	}
	return err
}

// similar returns the path that differs from a name only in its Unicode form; empty if there is none.
func (t *Tree) similar(name string) string {
	at := "."
	for part := range strings.SplitSeq(name, "/") {
		if f, err := t.open(path.Join(at, part), unix.O_PATH|unix.O_NOFOLLOW); err == nil {
			_ = f.Close()
		} else if part = t.similarIn(at, part); part == "" {
			return ""
		}
		at = path.Join(at, part)
	}
	if at == name {
		return "" // it was made meanwhile, or is a dangling link
	}
	return at
}

// similarIn returns the name in a directory that differs from another only in its
// Unicode form; empty if there is none.
func (t *Tree) similarIn(at, part string) string {
	dir, err := t.open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return ""
	}
	defer func() { _ = dir.Close() }()
	entries, err := readEntries(int(dir.Fd()))
	if err != nil {
		return ""
	}
	form := norm.NFC.String(part)
	for _, e := range entries {
		if norm.NFC.String(e.name) == form {
			return e.name
		}
	}
	return ""
}
