package mount

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// late is a mount whose source was missing at the start. It is checked once the source is there.
type late struct {
	mu      sync.Mutex
	checked bool
	disk    box.Owner
}

// isAway reports whether an error says that a source is missing, perhaps for a while, as a disk or a network file
// system that is not mounted.
func isAway(err error) bool {
	return slices.ContainsFunc([]error{unix.ENOENT, unix.ESTALE, unix.ENOTCONN, unix.EIO, unix.EHOSTDOWN, unix.ETIMEDOUT}, func(e error) bool {
		return errors.Is(err, e)
	})
}

// available returns the mount of a rule, or box.ErrNoMount while its source cannot be opened.
func (s *Set) available(r rule) (box.Mount, error) {
	m := r.Mount
	err := openable(m.Source)
	if err == nil && r.late != nil {
		m.Disk, err = s.checkLate(r)
	}
	if err != nil {
		return m, fmt.Errorf("%w: %s is configured, but its folder is missing on the sandbox's machine: ask its operator", box.ErrNoMount, m.Name)
	}
	return m, nil
}

// checkLate checks a mount whose source was missing at the start, and returns the owner of its files.
func (s *Set) checkLate(r rule) (box.Owner, error) {
	r.late.mu.Lock()
	defer r.late.mu.Unlock()
	if r.late.checked {
		return r.late.disk, nil
	}
	m := r.Mount
	err := s.checkFolder(&m)
	r.late.checked, r.late.disk = err == nil, m.Disk
	return m.Disk, err
}

func openable(source string) error {
	f, err := bind.Folder(source)
	if err != nil {
		return err
	}
	return f.Close()
}

// Skipped returns the names of the mounts that a user's commands get without a request, and lack because their source
// is missing.
func (s *Set) Skipped(tenant, user string) (names []string) {
	for _, r := range s.rules {
		if r.audience.includes(tenant, user) && !r.onRequest && s.isGone(r) {
			names = append(names, r.Name)
		}
	}
	return names
}

// Gone returns the names of all mounts whose source is missing.
func (s *Set) Gone() (names []string) {
	for _, r := range s.rules {
		if s.isGone(r) {
			names = append(names, r.Name)
		}
	}
	return names
}

func (s *Set) isGone(r rule) bool {
	_, err := s.available(r)
	return err != nil
}
