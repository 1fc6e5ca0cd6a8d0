package server

import (
	"errors"
	"os"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

// Reclaim removes data that no snapshot of a workspace holds any more, such as a crash can leave. The
// caller has exclusive use of the snapshots.
func Reclaim(w *box.Workspace) error {
	if _, err := os.Stat(w.Snapshots); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	st, err := snapshot.Open(w.Snapshots)
	if err != nil {
		return err
	}
	return errors.Join(st.Compact(), st.Close())
}
