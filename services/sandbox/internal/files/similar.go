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
func (r *resolver) orSimilar(name string, err error) error {
	if !errors.Is(err, ErrNotFound) || !isWide(name) {
		return err
	}
	if other := r.similar(name); other != "" {
		return &SimilarError{path.Join(r.alias, name), path.Join(r.alias, other)}
	}
	return err
}

// similar returns the path that differs from a name only in its Unicode form; empty if there is none.
func (r *resolver) similar(name string) string {
	at := "."
	for part := range strings.SplitSeq(name, "/") {
		if f, err := r.open(path.Join(at, part), unix.O_PATH|unix.O_NOFOLLOW); err == nil {
			_ = f.Close()
		} else if part = r.similarIn(at, part); part == "" {
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
func (r *resolver) similarIn(at, part string) string {
	dir, err := r.open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
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
