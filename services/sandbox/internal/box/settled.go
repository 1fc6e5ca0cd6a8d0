package box

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// settledFile lists the acknowledged execs, one to a line: when, in seconds since
// 1970, and the call's id. Lines are added at the end; a torn last one is the only
// one that a crash can leave.
const settledFile = "settled"

// settle remembers that an exec was acknowledged. mu is held.
func (s *session) settle(id string) error {
	now := s.node.o.Now()
	f, err := os.OpenFile(s.path(settledFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("remember an acknowledged exec: %w", err)
	}
	_, err = fmt.Fprintf(f, "%d %s\n", now.Unix(), id)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("remember an acknowledged exec: %w", err)
	}
	s.settled[id] = now
	return nil
}

// loadSettled reads what settle wrote. mu is held.
func (s *session) loadSettled() error {
	f, err := os.Open(s.path(settledFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the acknowledged execs: %w", err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		at, id, _ := strings.Cut(lines.Text(), " ")
		if seconds, err := strconv.ParseInt(at, 10, 64); err == nil && callID.MatchString(id) {
			s.settled[id] = time.Unix(seconds, 0)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the acknowledged execs: %w", err)
	}
	return nil
}

// pruneSettled forgets what is too old, and writes the file anew when that is
// worth it. mu is held.
func (s *session) pruneSettled(now time.Time) {
	kept := make(map[string]time.Time, len(s.settled))
	for id, at := range s.settled {
		if now.Sub(at) <= s.node.o.KeepFor {
			kept[id] = at
		}
	}
	if len(kept) == len(s.settled) {
		return
	}
	var b strings.Builder
	for id, at := range kept {
		fmt.Fprintf(&b, "%d %s\n", at.Unix(), id)
	}
	temp := s.path(settledFile + ".new")
	err := os.WriteFile(temp, []byte(b.String()), 0o600)
	if err == nil {
		err = os.Rename(temp, s.path(settledFile))
	}
	if err != nil {
		s.node.o.Log.Error("cannot forget old execs", "error", err)
		return
	}
	s.settled = kept
}
