package server

import (
	"errors"
	"os"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

// Reclaim removes what no snapshot of a workspace holds any more: a crash can leave
// some. Nobody else uses the snapshots meanwhile.
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
