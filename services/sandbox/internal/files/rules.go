package files

import (
	"errors"
	"fmt"
	"path"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// ErrChanged reports a symbolic link on a path that had none when it was resolved.
var ErrChanged = errors.New("the path leads elsewhere now")

// Rules restrict a request to what its caller decided on. Nil rules allow everything.
type Rules struct {
	// NoLinks refuses symbolic links: the path is already resolved.
	NoLinks bool
	// LeftOut reports whether a search or a list left out a denied file.
	LeftOut bool

	denied []string
	forms  []string // the same, with letters composed
	given  string
}

// NewRules makes the rules of a request. given is the path before its resolution. A file found below it has
// two paths, and a denied pattern for either path denies it.
func NewRules(given string, noLinks bool, denied []string) (*Rules, error) {
	given, err := clean(given)
	if err != nil {
		return nil, err
	}
	for _, glob := range denied {
		if !doublestar.ValidatePattern(glob) {
			return nil, fmt.Errorf("%w: %s", ErrPattern, glob)
		}
	}
	return &Rules{NoLinks: noLinks, denied: denied, forms: composed(denied), given: given}, nil
}

// denies reports whether a file below root is denied, and records that it is left out.
func (r *Rules) denies(root, name string) bool {
	if r == nil || len(r.denied) == 0 {
		return false
	}
	if r.matches(name) || r.given != root && r.matches(path.Join(r.given, beneath(root, name))) {
		r.LeftOut = true
		return true
	}
	return false
}

func (r *Rules) matches(name string) bool {
	return matches(r.denied, r.forms, filename.Encode(name))
}

// noLinks reports whether links are not followed.
func (r *Rules) noLinks() bool { return r != nil && r.NoLinks }
