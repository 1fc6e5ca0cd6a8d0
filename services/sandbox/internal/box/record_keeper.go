package box

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// recordKeeper stores the record of an exec in the exec's folder, until nothing of it is to be stored any more. It is
// safe for concurrent use.
type recordKeeper struct {
	dir string
	// recorded is set when the record with the exec's end is on disk, or when none is needed.
	recorded atomic.Bool

	mu   sync.Mutex // held while the record is written; taken before the exec's
	gone bool       // nothing is to be stored any more
}

// keep writes the latest record.
func (k *recordKeeper) keep(latest func() record, write func(path string, value any) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return nil
	}
	r := latest()
	switch err := makeFolder(k.dir); {
	case errors.Is(err, os.ErrNotExist):
		return nil // the workspace has just been moved away for deletion, with this record
	case err != nil:
		return err
	}
	if err := write(filepath.Join(k.dir, recordFile), r); err != nil {
		return err
	}
	k.recorded.Store(r.Outcome != nil)
	return nil
}

// drop ends all storing.
func (k *recordKeeper) drop() {
	k.mu.Lock()
	k.gone = true
	k.mu.Unlock()
	k.recorded.Store(true)
}

// makeFolder makes the folder of an exec's files.
func makeFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// noteNew is note with fewer steps for a new record. A record that a crash tears counts as missing, because the
// journal has its start.
func noteNew(path string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EEXIST) {
		return note(path, value)
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	n, err := unix.Write(fd, raw)
	if err == nil && n < len(raw) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return errors.Join(err, unix.Close(fd))
}
