package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

var (
	errNoObjects = errors.New("no object store is configured: set object-store.url")
	errObjects   = errors.New("the object store failed")
)

// exported returns the prefix in the object store of a session's snapshots of one generation. Each
// generation has its own prefix. So a node that has lost the workspace, and does not know it yet, cannot
// harm the copy of the next one.
func exported(k box.Key, generation int64) string {
	return fmt.Sprintf("%s/%012d/", k.Path(), generation)
}

// whole is a marker: all that was to be copied is there. Until it exists, earlier generations count, and
// are kept.
const whole = "whole"

func (s *snapshotServer) ExportSnapshots(ctx context.Context, r *sandboxv1.ExportSnapshotsRequest) (*sandboxv1.ExportSnapshotsResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err == nil && s.info.Objects == nil {
		err = errNoObjects
	}
	if err != nil {
		return nil, status(err)
	}
	w, leave, err := s.node.Admit(c)
	if err != nil {
		return nil, status(err)
	}
	defer leave()
	ctx, release, err := w.PushSnapshots(ctx)
	if err != nil {
		return nil, status(err)
	}
	defer release()
	place := exported(c.Key, w.Generation)
	did, err := snapshot.Push(ctx, w.Snapshots, w.ReadSnapshots, s.info.Objects, place)
	if err == nil && did.Snapshots > 0 { // without snapshots, the earlier copy is all that there is
		err = s.complete(ctx, c.Key, w.Generation)
	}
	if why := context.Cause(ctx); err != nil && why != nil {
		return nil, status(why)
	}
	if err != nil {
		return nil, status(remoteError(err))
	}
	return &sandboxv1.ExportSnapshotsResponse{Snapshots: did.Snapshots, SentBytes: did.Bytes}, nil
}

// complete marks a copy as complete and removes those of earlier generations.
func (s *Server) complete(ctx context.Context, k box.Key, generation int64) error {
	if err := s.info.Objects.Put(ctx, exported(k, generation)+whole, strings.NewReader(whole), int64(len(whole))); err != nil {
		return err
	}
	return s.dropPlaces(ctx, k, generation)
}

// dropPlaces removes the copies of generations before one.
func (s *Server) dropPlaces(ctx context.Context, k box.Key, before int64) error {
	all, err := s.info.Objects.List(ctx, k.Path()+"/")
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(all) { // remove the marker of a copy before the rest of it
		if g, ok := generationOf(k, o.Key); ok && g < before {
			if err := s.info.Objects.Delete(ctx, o.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// generationOf returns the generation in a key.
func generationOf(k box.Key, key string) (int64, bool) {
	rest, ok := strings.CutPrefix(key, k.Path()+"/")
	number, _, cut := strings.Cut(rest, "/")
	g, err := strconv.ParseInt(number, 10, 64)
	return g, ok && cut && err == nil
}

// remoteError separates failures of the object store from faults of the snapshots.
func remoteError(err error) error {
	for _, ours := range []error{snapshot.ErrNotFound, snapshot.ErrDamaged, snapshot.ErrTooLarge, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, ours) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errObjects, err)
}

func (s *snapshotServer) ImportSnapshots(ctx context.Context, r *sandboxv1.ImportSnapshotsRequest) (*sandboxv1.ImportSnapshotsResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err == nil && s.info.Objects == nil {
		err = errNoObjects
	}
	if err != nil {
		return nil, status(err)
	}
	if c.Generation == 0 {
		return nil, invalid("call.workspace_generation", "it must name the new place")
	}
	got, err := s.node.Import(c, func(w *box.Workspace) error { return s.fetch(ctx, c.Key, w, r.GetSnapshot()) })
	if err != nil {
		return nil, status(err)
	}
	k, done, err := s.read(ctx, r.GetCall().GetSession(), got.Generation)
	if err != nil {
		return nil, status(err)
	}
	defer done()
	resp := &sandboxv1.ImportSnapshotsResponse{Created: got.Created}
	from, err := k.selectSnapshot(r.GetSnapshot())
	switch {
	case err == nil:
		resp.Snapshot = snapshotMessage(from)
	case !errors.Is(err, snapshot.ErrNotFound): // that there is none now is not the import's fault
		return nil, status(err)
	}
	return resp, nil
}

// selectSnapshot returns the snapshot of an id, or the last one if there is none.
func (k *kept) selectSnapshot(id string) (snapshot.Snapshot, error) {
	if got, err := k.store.Get(id); !errors.Is(err, snapshot.ErrNotFound) {
		return got, err
	}
	list, err := k.store.List(1, 0)
	if err != nil || len(list) == 0 {
		return snapshot.Snapshot{}, cmp.Or(err, snapshot.ErrNotFound)
	}
	return list[0], nil
}

// fetch fills a new workspace, in which nothing runs yet, from the latest copy.
func (s *snapshotServer) fetch(ctx context.Context, key box.Key, w *box.Workspace, id string) error {
	from, err := s.lastPlace(ctx, key, w.Generation)
	if err != nil {
		return remoteError(err)
	}
	if err := snapshot.Pull(ctx, s.info.Objects, from, w.Snapshots, s.most(w)); err != nil {
		return remoteError(err)
	}
	k, err := openKept(w)
	if err != nil {
		return err
	}
	defer k.close()
	was, err := k.selectSnapshot(id)
	if err != nil {
		return err
	}
	k.tree.Room = w.CheckImport
	if _, err := k.store.Restore(ctx, k.tree, was.ID); err != nil {
		return err
	}
	w.Recount()
	return nil
}

// most returns the limits of a copy of a workspace's snapshots. The last snapshot was begun when there was
// room for others and may contain the whole workspace anew. It may even contain it twice: data read before
// commands are frozen may be read again (snapshot.Store.Prepare). An interrupted push also leaves objects
// that it was to replace.
func (s *snapshotServer) most(w *box.Workspace) snapshot.Bounds {
	return snapshot.Bounds{Snapshots: 2 * s.info.Snapshots, Bytes: 2*s.info.SnapshotBytes + 4*w.Limits().WorkspaceBytes}
}

// lastPlace returns the complete copy with the highest generation up to most. If there is none, it returns
// the latest copy with a snapshot.
func (s *snapshotServer) lastPlace(ctx context.Context, k box.Key, most int64) (string, error) {
	all, err := s.info.Objects.List(ctx, k.Path()+"/")
	if err != nil {
		return "", err
	}
	last, complete := "", ""
	for _, o := range slices.Backward(all) { // the numbers have leading zeros, and whole sorts after snapshots
		g, ok := generationOf(k, o.Key)
		if !ok || g > most {
			continue
		}
		switch place := exported(k, g); {
		case o.Key == place+whole:
			complete = place
		case !strings.HasPrefix(o.Key, place+"snapshots/"):
		case place == complete:
			return place, nil
		case last == "":
			last = place
		}
	}
	if last == "" {
		return "", fmt.Errorf("%w in the object store", snapshot.ErrNotFound)
	}
	return last, nil
}
