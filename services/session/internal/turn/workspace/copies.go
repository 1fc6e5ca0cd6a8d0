package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

const (
	// leaveTries is how often a leaving workspace is copied at most before it is sealed.
	// It is copied again when the last copy took longer than leaveQuick: changes made
	// meanwhile are not in it and would have to be copied while the workspace is sealed.
	leaveTries = 4
	leaveQuick = time.Second
	// leaveSealed bounds how long the workspace is sealed before it leaves.
	leaveSealed = time.Minute
	// leavePatience is how long a move waits for a peer that is away. A move can wait, and
	// a turn must not wait for a move.
	leavePatience = 5 * time.Second
)

// copies makes the copies with which a workspace leaves its node, and seals it meanwhile.
type copies struct {
	sandbox Sandbox
	maker   *maker
	sealed  int64 // the generation of the place in which this worker has sealed the workspace, or may have; 0: none
}

// exportAndSeal copies the workspace to the object store and leaves it sealed: the copy has
// everything that was answered, and no further request is answered. The caller must
// unseal the workspace if it does not leave.
func (c *copies) exportAndSeal(sc state.Scope, p store.Place) (err error) {
	last := ""
	defer func() {
		if err != nil && last != "" {
			rest, cancel := context.WithTimeout(context.WithoutCancel(sc), fenceTimeout)
			defer cancel()
			c.drop(sc.With(rest), last, leaveRef(sc, p, "failed"))
		}
	}()
	for range leaveTries {
		begun := time.Now()
		if last, err = c.exportCopy(sc, p, last); err != nil {
			return err
		}
		if time.Since(begun) < leaveQuick {
			break
		}
	}
	ctx, cancel := context.WithTimeout(sc, leaveSealed)
	defer cancel()
	sealed := sc.With(ctx)
	if err = c.seal(sealed, p); err == nil {
		last, err = c.exportCopy(sealed, p, last)
	}
	if err != nil {
		_ = c.unseal(sc) // otherwise it is unsealed before the workspace is next used
	}
	return err
}

// briefly is Patiently with the patience of a move.
func (c *copies) briefly(sc state.Scope, do func() error) error {
	return sc.PatientFor(min(leavePatience, sc.PeerPatience), nil, do)
}

// leaveRef returns the reference of one request for a leaving workspace. Each request has an id
// of its own: a request with an old id gets the old answer.
func leaveRef(sc state.Scope, p store.Place, step string) *commonv1.CallRef {
	return sc.CallRef(fmt.Sprintf("%s.leave.%d.%d.%d.%s", sc.Lease.Session, p.Generation, sc.Lease.Epoch, time.Now().UnixNano(), step))
}

// exportCopy copies the workspace and deletes the last copy, whose content is not sent again. It
// returns the copy that exists afterwards, also with an error; "" means none.
func (c *copies) exportCopy(sc state.Scope, p store.Place, last string) (string, error) {
	id, err := c.takeCopy(sc, leaveRef(sc, p, "copy"))
	if last != "" && errors.Is(err, remote.ErrTooManySnapshots) {
		c.drop(sc, last, leaveRef(sc, p, "room"))
		last = ""
		id, err = c.takeCopy(sc, leaveRef(sc, p, "again"))
	}
	if err != nil {
		return last, err
	}
	if last != "" {
		c.drop(sc, last, leaveRef(sc, p, "last"))
	}
	return id, c.briefly(sc, func() error { return c.sandbox.ExportSnapshots(sc, leaveRef(sc, p, "export")) })
}

// takeCopy makes a snapshot of the workspace on its node.
func (c *copies) takeCopy(sc state.Scope, call *commonv1.CallRef) (id string, err error) {
	err = c.briefly(sc, func() (err error) {
		id, err = c.sandbox.CreateSnapshot(sc, call, "before the workspace leaves its node")
		return err
	})
	return id, err
}

// seal forbids further changes of the workspace. A node of an older version cannot seal:
// its workspaces leave unsealed.
func (c *copies) seal(sc state.Scope, p store.Place) error {
	call := sc.CallRef(fmt.Sprintf("%s.seal.%d", sc.Lease.Session, p.Generation))
	c.sealed = p.Generation
	err := c.briefly(sc, func() error { return c.sandbox.SealWorkspace(sc, call) })
	if errors.Is(err, remote.ErrUnsupported) {
		sc.Logger.WarnContext(sc, "a workspace cannot be sealed before it leaves its node, because the node runs an older version: changes of the next moment may be lost", "session", sc.Lease.Session, "node", p.Node)
		c.sealed = 0
		return nil
	}
	return err
}

// unseal allows changes again in a workspace that stays, if this worker has sealed it. A
// later holder need not unseal.
func (c *copies) unseal(sc state.Scope) error {
	p := sc.Place()
	if c.sealed == 0 || c.sealed != p.Generation {
		c.sealed = 0
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sc), fenceTimeout)
	defer cancel()
	sc = sc.With(ctx)
	err := c.sandbox.UnsealWorkspace(sc, sc.CallRef(fmt.Sprintf("%s.unseal.%d", sc.Lease.Session, p.Generation)))
	if err != nil && !errors.Is(err, remote.ErrNoWorkspace) {
		sc.Logger.WarnContext(sc, "a workspace stays sealed, though it does not leave its node", "session", sc.Lease.Session, "node", p.Node, "error", err)
		return err
	}
	c.sealed = 0
	return nil
}

// unsealAgain lifts a seal of this worker before the workspace is used: its node may not have
// answered the first attempt. A lost workspace keeps its seal.
func (c *copies) unsealAgain(sc state.Scope) error {
	if c.sealed == 0 || c.maker.nodes.Lost(sc.NodeName()) {
		return nil
	}
	sc, stop := c.maker.untilLost(sc)
	defer stop()
	err := sc.Patiently(sc.WarnAway("The workspace stays on its node, and cannot be used again now"), func() error { return c.unseal(sc) })
	if nodeLost(sc) {
		return nil
	}
	return err
}

// drop deletes a snapshot of a move or an export that is no longer needed.
func (c *copies) drop(sc state.Scope, id string, call *commonv1.CallRef) {
	if err := c.sandbox.DeleteSnapshots(sc, call, id); err != nil {
		sc.Logger.WarnContext(sc, "a snapshot that is no longer needed stays", "session", sc.Lease.Session, "snapshot", id, "error", err)
	}
}
