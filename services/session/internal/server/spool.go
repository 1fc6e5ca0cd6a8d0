package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/reply"
)

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
	return bufio.NewReaderSize(f, reply.PieceBytes), nil
}

// badImport refuses a file.
func badImport(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_IMPORT,
		"The file cannot be imported: "+what+". Nothing was imported; export the session again, or use an unchanged export file.",
		apierr.Field("data", what))
}
