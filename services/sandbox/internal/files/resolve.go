package files

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Resolve follows the links of a path and returns the target, without links. A missing part stays as it is.
func (t *Tree) Resolve(name string) (string, error) {
	name, err := Clean(name)
	if err != nil {
		return "", err
	}
	for range attempts {
		r := resolution{within: &t.resolver, at: ".", left: strings.Split(name, "/")}
		switch to, err := r.run(); {
		case errors.Is(err, ErrChanged): // a directory became a link meanwhile
		case err != nil:
			return "", err
		case len(to) >= unix.PathMax:
			return "", tooLong(to)
		default:
			return Clean(to)
		}
	}
	return "", fmt.Errorf("%w: %s changes while it is looked up", ErrEscapes, name)
}

// resolution is one pass over a path, part by part.
type resolution struct {
	within *resolver
	at     string // a path without links
	left   []string
	links  int
}

func (r *resolution) run() (string, error) {
	for len(r.left) > 0 {
		part := r.left[0]
		r.left = r.left[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if r.at == "." {
				return "", fmt.Errorf("%w: a link leads above it", ErrEscapes)
			}
			r.at = path.Dir(r.at)
			continue
		}
		there, err := r.step(path.Join(r.at, part))
		if err != nil {
			return "", err
		}
		if !there {
			return path.Join(append([]string{r.at, part}, r.left...)...), nil
		}
	}
	return r.at, nil
}

// step moves to a place, or to the target of a link there. It reports whether the place exists.
func (r *resolution) step(place string) (bool, error) {
	i, err := r.within.lookAt(place)
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, errNotDirectory):
		return false, nil
	case err != nil:
		return false, err
	case i.Type != Symlink:
		r.at = place
		return true, nil
	case path.IsAbs(i.Target):
		return false, fmt.Errorf("%w: %s is an absolute link", ErrEscapes, place)
	}
	if r.links++; r.links > maxLinks {
		return false, refine(place, unix.ELOOP)
	}
	r.left = append(strings.Split(i.Target, "/"), r.left...)
	return true, nil
}

// Resolve is Tree.Resolve. A link leads neither into a mount nor out of one.
func (s *Space) Resolve(name string) (to string, err error) {
	full, m, rest, err := s.find(name)
	if err != nil {
		return "", err
	}
	alias := ""
	if m == nil {
		to, err = s.Tree.Resolve(full)
	} else {
		alias = m.Alias
		err = m.in(func(t *Tree) (err error) { to, err = t.Resolve(rest); return })
		to = path.Join(alias, to)
	}
	if err == nil && s.Alias(to) != alias {
		err = fmt.Errorf("%w: %s leads across the border of a mount", ErrNotFound, full)
	}
	return to, err
}
