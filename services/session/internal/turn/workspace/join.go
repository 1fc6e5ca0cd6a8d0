package workspace

import (
	"errors"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// join gives a subagent's session the place of the workspace that it works in. Only the root's worker
// assigns that place: when the place is lost, a subagent waits until there is another one, or until the
// root ends its turn.
func (m *Mover) join(sc state.Scope) (moved bool, out state.Outcome, err error) {
	if p := sc.Place(); p.Node != "" && !m.nodes.Lost(p.Node) && !m.maker.isLost(p) {
		return false, state.Outcome{}, nil
	}
	was := sc.Place()
	err = sc.Patiently(sc.WarnAway("The workspace has no place now"), func() error {
		p, _, err := sc.Store.PlaceOf(sc, sc.WorkspaceKey())
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("read where the workspace is: %w", err)
		case err != nil || p.Node == "" || p.Restore || p.Generation == was.Generation:
			return remote.Unavailable("The workspace is not restored yet.")
		}
		sc.SetPlace(p)
		return nil
	})
	switch {
	case sc.Ended():
		return false, state.Stopped(), nil // the loop finds the cause
	case state.MayRepeat(err):
		return false, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The machine that held the workspace is lost, and the workspace was not restored elsewhere in time."), nil
	}
	return err == nil, state.Outcome{}, err
}
