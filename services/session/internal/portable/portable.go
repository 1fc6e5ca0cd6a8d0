// Package portable copies sessions: into files, from files, and to other sessions.
package portable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/limits"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
)

// Sessions copies sessions. It is safe for concurrent use.
type Sessions struct {
	Store      store.Store
	Directory  *directory.Directory
	Submit     *submit.Submitter
	Workspaces *placement.Workspaces
	// Use bounds the sessions of tenants and users, and MaxBytes a file that is imported.
	Use      limits.Config
	MaxBytes int64
	Log      *slog.Logger
}

// Bounds of one read or write of the store.
const (
	storeRows  = 500
	storeBytes = 4 << 20
)

// bufferBytes is how much of a file is read or sent at a time.
const bufferBytes = 256 << 10

// spool returns a temporary file without a name: it disappears with the
// process.
func spool() (*os.File, error) {
	f, err := os.CreateTemp("", "fairlead-session-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("make a temporary file: %w", err), f.Close())
	}
	return f, nil
}

// rewind reads a spool from its beginning.
func rewind(f *os.File) (io.Reader, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read a temporary file: %w", err)
	}
	return bufio.NewReaderSize(f, bufferBytes), nil
}
