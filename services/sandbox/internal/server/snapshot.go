package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

var errTooManySnapshots = errors.New("the session has reached its limit of snapshots: delete some")

type snapshotServer struct {
	sandboxv1.UnimplementedSnapshotServiceServer
	*Server
}

// kept is an open workspace with its open snapshots.
type kept struct {
	*box.Workspace
	tree  *snapshot.Tree
	store *snapshot.Store
}

func openKept(w *box.Workspace) (*kept, error) {
	st, err := snapshot.Open(w.Snapshots)
	if err != nil {
		return nil, err
	}
	t, err := snapshot.OpenTree(w.Dir, w.Staging, snapshot.Owner{UID: w.Owner.UID, GID: w.Owner.GID})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	t.Room = w.CheckWrite
	return &kept{Workspace: w, tree: t, store: st}, nil
}

func (k *kept) close() {
	_ = k.tree.Close()
	_ = k.store.Close()
}

// read opens a session's snapshots for reading.
func (s *snapshotServer) read(ctx context.Context, session string, generation int64) (*kept, func(), error) {
	k, err := key(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	w, leave, err := s.node.View(k, generation)
	if err != nil {
		return nil, nil, err
	}
	unlock := w.ReadSnapshots()
	open, err := openKept(w)
	if err != nil {
		unlock()
		leave()
		return nil, nil, err
	}
	return open, func() { open.close(); unlock(); leave() }, nil
}

// mutation is a change whose fate the store shows, or that is finished after a crash.
type mutation struct {
	method   string
	request  []any // identifies equal requests
	durable  bool  // its answer is on disk before the caller gets it
	readOnly bool  // it changes no files, so that a seal does not refuse it
	adds     bool  // it only adds a snapshot
	// quick, if set, makes the change without opening the store, or returns nil.
	quick func(w *box.Workspace, intend func(any) error) (proto.Message, error)
	do    func(k *kept, intend func(any) error) (proto.Message, error)
}

// mutate makes a change once per call and decodes its answer into resp.
func (s *snapshotServer) mutate(c box.Call, m mutation, resp proto.Message) error {
	request, err := json.Marshal(m.request)
	if err != nil {
		return err
	}
	raw, err := s.node.Mutate(c, box.Change{
		Method: m.method, Request: request, Failure: failure, Durable: m.durable, SnapshotsOnly: m.readOnly, Adds: m.adds,
		Do: func(w *box.Workspace, intend func([]byte) error) ([]byte, error) {
			intended := func(what any) error {
				raw, err := json.Marshal(what)
				return errors.Join(err, intend(raw))
			}
			if m.quick != nil {
				if got, err := m.quick(w, intended); err != nil || got != nil {
					return encoded(got, err)
				}
			}
			k, err := openKept(w)
			if err != nil {
				return nil, err
			}
			defer k.close()
			got, err := m.do(k, intended)
			return encoded(got, err)
		},
	})
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, resp)
}

func encoded(m proto.Message, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return proto.Marshal(m)
}

// frozen returns how long commands were stopped; nil if they were not.
func frozen(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func snapshotMessage(r snapshot.Snapshot) *sandboxv1.Snapshot {
	m := &sandboxv1.Snapshot{
		Id: r.ID, Description: r.Description, Parent: r.Parent, CreateTime: timestamppb.New(r.Created),
		Files: r.Files, Directories: r.Directories, Links: r.Links, Bytes: r.Bytes, AddedBytes: r.Added, LeftOutCount: r.SkippedCount,
	}
	for _, l := range r.Skipped {
		m.LeftOut = append(m.LeftOut, &sandboxv1.LeftOut{Path: l.Path, Why: l.Why})
	}
	return m
}

func (s *snapshotServer) GetSnapshot(ctx context.Context, r *sandboxv1.GetSnapshotRequest) (*sandboxv1.GetSnapshotResponse, error) {
	k, done, err := s.read(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	defer done()
	got, err := k.store.Get(r.GetSnapshot())
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.GetSnapshotResponse{Snapshot: snapshotMessage(got)}, nil
}

func (s *snapshotServer) ListSnapshots(ctx context.Context, r *sandboxv1.ListSnapshotsRequest) (*sandboxv1.ListSnapshotsResponse, error) {
	scope, err := scope(ctx, "ListSnapshots", r.GetSession())
	if err != nil {
		return nil, status(err)
	}
	var before int64
	if r.GetPageToken() != "" {
		if err := page.Decode(r.GetPageToken(), scope, &before); err != nil {
			return nil, status(err)
		}
	}
	k, done, err := s.read(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	defer done()
	n := page.Size(r.GetPageSize(), 50, 1000)
	list, err := k.store.List(n+1, before)
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.ListSnapshotsResponse{}
	for _, got := range list {
		resp.Snapshots = append(resp.Snapshots, snapshotMessage(got))
	}
	if n = min(n, fits(resp.GetSnapshots())); n < len(list) {
		resp.Snapshots, resp.NextPageToken = resp.Snapshots[:n], page.Encode(scope, list[n-1].Seq)
	}
	return resp, nil
}

// scope returns what a page token is bound to.
func scope(ctx context.Context, method, session string, filters ...string) (string, error) {
	k, err := key(ctx, session)
	return strings.Join(append([]string{method, k.Tenant, k.Session}, filters...), "\x00"), err
}

func (s *snapshotServer) DeleteSnapshots(ctx context.Context, r *sandboxv1.DeleteSnapshotsRequest) (*sandboxv1.DeleteSnapshotsResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.DeleteSnapshotsResponse{}
	err = s.mutate(c, mutation{
		method: "prune", readOnly: true, request: []any{r.GetSnapshots(), r.GetKeepLast()},
		do: func(k *kept, intend func(any) error) (proto.Message, error) { return remove(k, r, intend) },
	}, resp)
	if err != nil {
		return nil, status(err)
	}
	return resp, nil
}

func remove(k *kept, r *sandboxv1.DeleteSnapshotsRequest, intend func(any) error) (proto.Message, error) {
	all, err := k.store.List(-1, 0)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i, got := range all {
		if slices.Contains(r.GetSnapshots(), got.ID) || r.GetKeepLast() > 0 && i >= int(r.GetKeepLast()) {
			ids = append(ids, got.ID)
		}
	}
	if err := intend(ids); err != nil {
		return nil, err
	}
	return removeAll(k, ids)
}

func removeAll(k *kept, ids []string) (proto.Message, error) {
	defer k.RemoveSnapshots()()
	before := k.store.Size()
	if err := k.store.Delete(ids...); err != nil {
		return nil, err
	}
	return &sandboxv1.DeleteSnapshotsResponse{Deleted: int64(len(ids)), FreedBytes: max(before-k.store.Size(), 0)}, nil
}

func (s *snapshotServer) ForkSnapshot(ctx context.Context, r *sandboxv1.ForkSnapshotRequest) (*sandboxv1.ForkSnapshotResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	if r.GetSource() == r.GetCall().GetSession() {
		return nil, invalid("source", "a session cannot be a fork of itself")
	}
	source, done, err := s.read(ctx, r.GetSource(), r.GetSourceGeneration())
	if err != nil {
		return nil, status(err)
	}
	defer done()
	got, err := s.node.Import(c, func(w *box.Workspace) error { return fork(ctx, source, w, r.GetSnapshot()) })
	if err != nil {
		return nil, status(err)
	}
	return &sandboxv1.ForkSnapshotResponse{Created: got.Created}, nil
}

// fork fills a new workspace, in which nothing runs yet.
func fork(ctx context.Context, source *kept, w *box.Workspace, id string) error {
	if err := source.store.CopyTo(ctx, w.Snapshots, id); err != nil {
		return err
	}
	k, err := openKept(w)
	if err != nil {
		return err
	}
	defer k.close()
	if _, err := k.store.Restore(ctx, k.tree, id); err != nil {
		return err
	}
	w.Recount()
	return w.Reserve(1, 0) // the limits may be lower by now
}
