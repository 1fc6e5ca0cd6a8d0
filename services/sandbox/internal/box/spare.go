package box

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// spareFolder holds the folders of spares.
const spareFolder = ".spare"

// sparePause is the pause between a failure and the next try.
const sparePause = 10 * time.Second

// spare is a workspace kept ready, with a running sandbox: an empty folder, a home directory and a user. A
// session takes it over by renaming the folders. The sandbox has them open and does not know their names.
type spare struct {
	slot    int
	sandbox Sandbox
}

func (sp *spare) dir() string { return filepath.Dir(sp.sandbox.Workspace) }

// spares are the spares of a node that no session has taken yet. It is safe for concurrent use.
type spares struct {
	dir    string
	runner Runner
	limits Limits
	mounts Mounts // nil: there are none
	slots  *slots
	log    *slog.Logger
	ready  chan *spare
}

// newSpares keeps one spare less ready than asked for: one more is being made, or waits to be ready.
func newSpares(o Options, users *slots) *spares {
	return &spares{
		dir: filepath.Join(o.Dir, spareFolder), runner: o.Runner, limits: o.Limits, mounts: o.Mounts, slots: users, log: o.Log,
		ready: make(chan *spare, max(o.Spares-1, 0)),
	}
}

// clear removes the spares of an earlier run.
func (all *spares) clear() error { return erase.All(all.dir) }

// keep makes spares whenever there are too few, until the context ends.
func (all *spares) keep(ctx context.Context) {
	for i := 0; ; i++ {
		sp, err := all.create(ctx, i)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, ErrTooManySandboxes) {
				all.log.Warn("cannot make a sandbox ahead of time", "error", err)
			}
			pause := time.NewTimer(sparePause)
			select {
			case <-ctx.Done():
				pause.Stop()
				return
			case <-pause.C:
				continue
			}
		}
		select {
		case all.ready <- sp:
		case <-ctx.Done():
			all.drop(sp)
			return
		}
	}
}

func (all *spares) create(ctx context.Context, i int) (*spare, error) {
	slot, err := all.slots.acquire()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(all.dir, strconv.Itoa(i))
	sp := &spare{slot: slot, sandbox: Sandbox{
		ID: "spare-" + strconv.Itoa(i), Workspace: filepath.Join(dir, "workspace"), Home: filepath.Join(dir, "home"),
		Owner: all.slots.owner(slot), Limits: all.limits, Spare: true,
	}}
	err = os.MkdirAll(dir, 0o700)
	for _, path := range []string{sp.sandbox.Workspace, sp.sandbox.Home} {
		if err == nil {
			err = makeOwned(path, sp.sandbox.Owner)
		}
	}
	if err == nil {
		sp.sandbox.Mounts, err = all.commonMounts(sp.sandbox)
	}
	if err == nil {
		err = all.runner.Warm(ctx, sp.sandbox)
	}
	if err != nil {
		all.drop(sp)
		return nil, err
	}
	return sp, nil
}

// commonMounts returns the mounts that all users get. A session with other mounts does not keep the spare's
// sandbox.
func (all *spares) commonMounts(s Sandbox) (string, error) {
	if all.mounts == nil {
		return "", nil
	}
	mounts, err := all.mounts.For("", "", nil)
	if err == nil {
		mounts, err = placed(s.Workspace, s.Owner, mounts, true)
	}
	return EncodeMounts(mounts), err
}

func (all *spares) drop(sp *spare) {
	all.runner.Stop(sp.sandbox.Workspace)
	if err := erase.All(sp.dir()); err != nil {
		all.log.Error("cannot remove the folders of a spare sandbox", "error", err)
	}
	all.slots.free(sp.slot)
}

// claim returns a spare, or nil if there is none.
func (all *spares) claim() *spare {
	select {
	case sp := <-all.ready:
		return sp
	default:
		return nil
	}
}

// adopt makes a spare's folders the session's.
func (ws *workspace) adopt(sp *spare) error {
	if err := os.MkdirAll(ws.dir, 0o700); err != nil {
		return err
	}
	for from, to := range map[string]string{sp.sandbox.Workspace: ws.path("workspace"), sp.sandbox.Home: ws.path("home")} {
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(sp.dir(), "covers"), ws.path("covers")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // covers is a driver's folder beside the workspace
	}
	return os.Remove(sp.dir())
}

// makeOwned makes a folder with a given owner.
func makeOwned(path string, o Owner) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // the parent folder is closed; inside, all may look
		return err
	}
	if o == Self {
		return nil
	}
	if err := os.Chown(path, o.UID, o.GID); err != nil {
		return fmt.Errorf("%w: give the workspace to user %d: %w", ErrIsolation, o.UID, err)
	}
	return nil
}
