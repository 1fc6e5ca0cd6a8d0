package server

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

// snapshotID returns the id of the snapshot that a call makes.
func snapshotID(call string) string {
	sum := sha256.Sum256([]byte(call))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

func (s *snapshotServer) CreateSnapshot(ctx context.Context, r *sandboxv1.CreateSnapshotRequest) (*sandboxv1.CreateSnapshotResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.CreateSnapshotResponse{}
	err = s.mutate(c, mutation{
		method: "snapshot", readOnly: true, adds: true, request: []any{r.GetDescription(), r.GetParent()},
		quick: func(w *box.Workspace, intend func(any) error) (proto.Message, error) {
			return s.repeat(w, c.ID, r, intend)
		},
		do: func(k *kept, intend func(any) error) (proto.Message, error) { return s.create(ctx, k, c.ID, r, intend) },
	}, resp)
	if err != nil {
		return nil, status(err)
	}
	return resp, nil
}

func (s *snapshotServer) create(ctx context.Context, k *kept, call string, r *sandboxv1.CreateSnapshotRequest, intend func(any) error) (proto.Message, error) {
	id := snapshotID(call)
	if _, err := k.store.Get(id); errors.Is(err, snapshot.ErrNotFound) {
		if err := errors.Join(s.checkLimits(k.store.Names, k.store.Size()), k.CheckDiskSpace()); err != nil {
			return nil, err
		}
	}
	if k.Busy() { // what is stored now need not be stored while commands are frozen
		if err := k.store.Prepare(ctx, k.tree); err != nil {
			return nil, err
		}
	}
	clones, err := k.Kept()
	if err != nil {
		return nil, err
	}
	release, err := k.Freeze(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	mark, still := k.Mark()
	root, err := lookAtRoot(k.Dir)
	if err != nil {
		return nil, err
	}
	made, err := k.store.Create(ctx, k.tree, snapshot.Request{
		ID: id, Parent: r.GetParent(), Description: r.GetDescription(), Clones: clones, Now: time.Now(), Read: func() { release() },
		Intend: intendSnapshot(k.Workspace, id, intend),
	})
	if err != nil {
		return nil, err
	}
	if still {
		k.Remember(mark, looked{made, k.store.Size(), root})
	}
	return &sandboxv1.CreateSnapshotResponse{Snapshot: snapshotMessage(made), Frozen: frozen(release())}, nil
}

// intendSnapshot returns what journals a snapshot. The next start or change makes a mere name durable, before it takes
// effect.
func intendSnapshot(w *box.Workspace, id string, intend func(any) error) func(record []byte) error {
	return func(record []byte) error {
		if record == nil {
			return intend(id)
		}
		return w.Refer(record)
	}
}

// looked is what a workspace and its snapshots were when the workspace was last read.
type looked struct {
	snapshot.Snapshot
	size int64 // of the store
	root root
}

// root shows changes of a workspace's top folder that the host has made.
type root struct {
	inode          uint64
	changed, wrote unix.Timespec
}

func lookAtRoot(dir string) (root, error) {
	var st unix.Stat_t
	err := unix.Lstat(dir, &st)
	return root{st.Ino, st.Ctim, st.Mtim}, err
}

// repeat makes a snapshot of a workspace that has not changed since the last one. Otherwise it returns nil.
func (s *snapshotServer) repeat(w *box.Workspace, call string, r *sandboxv1.CreateSnapshotRequest, intend func(any) error) (proto.Message, error) {
	last, ok := w.Unchanged().(looked)
	if now, err := lookAtRoot(w.Dir); !ok || err != nil || now != last.root {
		return nil, nil //nolint:nilnil,nilerr // the workspace must be read
	}
	id, store := snapshotID(call), snapshot.In(w.Snapshots)
	if _, err := store.Get(id); errors.Is(err, snapshot.ErrNotFound) {
		if err := errors.Join(s.checkLimits(store, last.size), w.CheckDiskSpace()); err != nil {
			return nil, err
		}
	}
	made, err := store.Repeat(last.Snapshot, snapshot.Request{
		ID: id, Parent: r.GetParent(), Description: r.GetDescription(), Now: time.Now(), Intend: intendSnapshot(w, id, intend),
	})
	if err != nil {
		return nil, err
	}
	return &sandboxv1.CreateSnapshotResponse{Snapshot: snapshotMessage(made)}, nil
}

// checkLimits refuses another snapshot if there are too many, or if they are too large.
func (s *snapshotServer) checkLimits(names snapshot.Names, size int64) error {
	have, err := names.Count()
	if err != nil {
		return err
	}
	if have >= s.info.Snapshots || size >= s.info.SnapshotBytes {
		return fmt.Errorf("%w: %d of %d, with %d of %d bytes", errTooManySnapshots, have, s.info.Snapshots, size, s.info.SnapshotBytes)
	}
	return nil
}
