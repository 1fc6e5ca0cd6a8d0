package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// settledFile lists the acknowledged execs, one to a line: the time, in seconds since 1970, and the call's
// id. Lines are only appended, so that a crash can tear only the last one.
const settledFile = "settled"

// settle records that an exec was acknowledged. It writes that to disk if nothing else on disk shows that
// the command was started. mu is held.
func (x *execs) settle(id string) error {
	now := x.node.o.Now()
	f, err := os.OpenFile(x.path(settledFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("record an acknowledged exec: %w", err)
	}
	err = appendLine(f, fmt.Sprintf("%d %s\n", now.Unix(), id))
	if err == nil && !x.node.journal.contains(x.all[id]) {
		err = errors.Join(f.Sync(), durable.SyncDir(x.path()))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("record an acknowledged exec: %w", err)
	}
	x.settled[id] = now
	return nil
}

// appendLine appends a whole line, or nothing if the disk is full: the next line would become part of a
// partial one.
func appendLine(f *os.File, line string) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if n, err := f.WriteString(line); err != nil {
		if n > 0 {
			err = errors.Join(err, f.Truncate(st.Size()))
		}
		return err
	}
	return nil
}

// loadSettled reads the file and removes a torn line. mu is held.
func (x *execs) loadSettled() error {
	raw, err := os.ReadFile(x.path(settledFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the acknowledged execs: %w", err)
	}
	whole := bytes.LastIndexByte(raw, '\n') + 1
	if whole < len(raw) {
		if err := os.Truncate(x.path(settledFile), int64(whole)); err != nil {
			return fmt.Errorf("remove a torn line from the acknowledged execs: %w", err)
		}
	}
	for line := range strings.Lines(string(raw[:whole])) {
		at, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if seconds, err := strconv.ParseInt(at, 10, 64); err == nil && callID.MatchString(id) {
			x.settled[id] = time.Unix(seconds, 0)
		}
	}
	return nil
}

// pruneSettled forgets expired entries, and rewrites the file if that saves enough. mu is held.
func (x *execs) pruneSettled(now time.Time) {
	kept := make(map[string]time.Time, len(x.settled))
	for id, at := range x.settled {
		if now.Sub(at) <= x.node.o.Keep.For {
			kept[id] = at
		}
	}
	if len(kept) == len(x.settled) {
		return
	}
	var b strings.Builder
	for id, at := range kept {
		fmt.Fprintf(&b, "%d %s\n", at.Unix(), id)
	}
	if err := durable.WriteFile(x.path(settledFile), []byte(b.String())); err != nil {
		x.node.o.Log.Error("cannot forget old execs", "error", err)
		return
	}
	x.settled = kept
}
