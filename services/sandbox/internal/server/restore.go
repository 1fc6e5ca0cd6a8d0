package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

func (s *snapshotServer) RestoreSnapshot(ctx context.Context, r *sandboxv1.RestoreSnapshotRequest) (*sandboxv1.RestoreSnapshotResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.RestoreSnapshotResponse{}
	var release func() time.Duration
	err = s.mutate(c, mutation{
		method: "restore", request: []any{r.GetSnapshot()},
		durable: true, // otherwise a crash of the machine would make the service finish it again
		do: func(k *kept, intend func(any) error) (_ proto.Message, err error) {
			if release, err = k.Freeze(ctx); err != nil {
				return nil, err
			}
			if err := k.avoid(c.User); err != nil {
				return nil, err
			}
			if err := intend(r.GetSnapshot()); err != nil {
				return nil, err
			}
			// Once begun it runs to its end, even if the caller leaves.
			return restore(context.WithoutCancel(ctx), k, r.GetSnapshot())
		},
	}, resp)
	if release != nil { // only after the answer is stored: until then a crash would make the service finish the change again
		resp.Frozen = frozen(release())
	}
	if err != nil {
		return nil, status(err)
	}
	return resp, nil
}

// avoid makes a restore leave the places of mounts as they are.
func (k *kept) avoid(user string) (err error) {
	k.tree.Points, err = k.Points(user)
	k.tree.Aside = box.AsideName
	return err
}

func restore(ctx context.Context, k *kept, id string) (proto.Message, error) {
	defer k.Recount()
	was, err := k.store.Get(id)
	if err != nil {
		return nil, err
	}
	did, err := k.store.Restore(ctx, k.tree, id)
	if err == nil {
		err = voidClones(k.Workspace, was.Clones)
	}
	if err != nil {
		return nil, err
	}
	return &sandboxv1.RestoreSnapshotResponse{Written: did.Written, Removed: did.Removed, Changed: did.Changed}, nil
}

// requested is the prefix of the ids of calls that the session service makes for one request of a user. A
// late retry must find the first answer, whatever has become of the repository. All other calls ask for
// repositories that an agent always has.
const requested = "repository."

// voidClones voids the clones that a restore has undone, so that a repeated call makes them again. These
// are the clones that were made after the snapshot. A clone that was made before, and whose repository is
// missing from the snapshot, had been removed by a command, and stays remembered. If a snapshot does not
// list its clones, a clone counts as undone if its repository is missing.
func voidClones(w *box.Workspace, made []string) error {
	t, err := openTree(w)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	return w.VoidKept(func(call string, raw []byte) bool {
		switch {
		case strings.HasPrefix(call, requested):
			return false
		case made != nil:
			return !slices.Contains(made, call)
		}
		answer, err := cloned(raw)
		if err != nil {
			return false
		}
		_, err = t.Stat(repositories + "/" + answer.GetRepository().GetDirectory())
		return errors.Is(err, files.ErrNotFound)
	})
}
