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

// exported is where the object store has a session's snapshots of one generation. Each
// has a place of its own, so that a node that has lost the workspace and does not
// know it yet cannot harm what the next one copies.
func exported(k box.Key, generation int64) string {
	return fmt.Sprintf("%s/%012d/", k.Path(), generation)
}

// whole is what a place has once all that there was to be copied is in it: until then the
// places before it count, which are there as long.
const whole = "whole"

func (s *snapshotServer) ExportSnapshots(ctx context.Context, r *sandboxv1.ExportSnapshotsRequest) (*sandboxv1.ExportSnapshotsResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err == nil && s.info.Objects == nil {
		err = errNoObjects
	}
	if err != nil {
		return nil, status(err)
	}
	w, leave, err := s.node.Admit(c, r.GetWorkspaceGeneration())
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
	if err == nil && did.Snapshots > 0 { // without any, what was copied before is all that there is
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

// complete says that all of a place was copied, and removes the places before it.
func (s *Server) complete(ctx context.Context, k box.Key, generation int64) error {
	if err := s.info.Objects.Put(ctx, exported(k, generation)+whole, strings.NewReader(whole), int64(len(whole))); err != nil {
		return err
	}
	return s.dropPlaces(ctx, k, generation)
}

// dropPlaces removes what was copied from places before a generation.
func (s *Server) dropPlaces(ctx context.Context, k box.Key, before int64) error {
	all, err := s.info.Objects.List(ctx, k.Path()+"/")
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(all) { // what says that a place is whole goes before the rest of it
		if g, ok := generationOf(k, o.Key); ok && g < before {
			if err := s.info.Objects.Delete(ctx, o.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// generationOf is the generation of the place that a key belongs to.
func generationOf(k box.Key, key string) (int64, bool) {
	rest, ok := strings.CutPrefix(key, k.Path()+"/")
	number, _, cut := strings.Cut(rest, "/")
	g, err := strconv.ParseInt(number, 10, 64)
	return g, ok && cut && err == nil
}

// remoteError tells what the object store did from what is wrong with the
// snapshots.
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
	got, err := s.node.Import(c, r.GetWorkspaceGeneration(), func(w *box.Workspace) error { return s.fetch(ctx, c.Key, w, r.GetSnapshot()) })
	if err != nil {
		return nil, status(err)
	}
	k, done, err := s.read(ctx, r.GetCall().GetSession(), got.Generation)
	if err != nil {
		return nil, status(err)
	}
	defer done()
	resp := &sandboxv1.ImportSnapshotsResponse{Created: got.Created}
	from, err := k.wanted(r.GetSnapshot())
	switch {
	case err == nil:
		resp.Snapshot = snapshotMessage(from)
	case !errors.Is(err, snapshot.ErrNotFound): // that there is none by now is no fault of the import's
		return nil, status(err)
	}
	return resp, nil
}

// wanted is the snapshot of an id, or the last one if there is no such.
func (k *kept) wanted(id string) (snapshot.Snapshot, error) {
	if got, err := k.store.Get(id); !errors.Is(err, snapshot.ErrNotFound) {
		return got, err
	}
	list, err := k.store.List(1, 0)
	if err != nil || len(list) == 0 {
		return snapshot.Snapshot{}, cmp.Or(err, snapshot.ErrNotFound)
	}
	return list[0], nil
}

// fetch fills a new workspace, in which nothing runs yet, from the last place that
// was copied.
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
	was, err := k.wanted(id)
	if err != nil {
		return err
	}
	k.tree.Room = w.Brings
	if _, err := k.store.Restore(ctx, k.tree, was.ID); err != nil {
		return err
	}
	w.Recount()
	return nil
}

// most is what a copy of a workspace's snapshots may be at most. The last one was begun when
// there was room for others, and may have all of the workspace anew: twice, for what is read
// before commands stand still may be read again (snapshot.Store.Prepare). And a push that
// broke off has left what it was to take the place of.
func (s *snapshotServer) most(w *box.Workspace) snapshot.Bounds {
	return snapshot.Bounds{Snapshots: 2 * s.info.Snapshots, Bytes: 2*s.info.SnapshotBytes + 4*w.Limits().WorkspaceBytes}
}

// lastPlace is the place with the highest generation, up to one, to which all was copied,
// or if there is no such, from which a snapshot was.
func (s *snapshotServer) lastPlace(ctx context.Context, k box.Key, most int64) (string, error) {
	all, err := s.info.Objects.List(ctx, k.Path()+"/")
	if err != nil {
		return "", err
	}
	last, complete := "", ""
	for _, o := range slices.Backward(all) { // the numbers have leading zeros, and whole comes after snapshots
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
