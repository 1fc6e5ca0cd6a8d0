package remote

import (
	"context"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/node"
)

// listed is how many things a page of a list may have.
const listed = 1000

// CreateSnapshot makes a snapshot of the workspace and returns its id.
func (s *Sandbox) CreateSnapshot(ctx context.Context, call *commonv1.CallRef, description string) (id string, err error) {
	made, err := s.snapshots.CreateSnapshot(to(ctx, call), &sandboxv1.CreateSnapshotRequest{Call: call, Description: description})
	return made.GetSnapshot().GetId(), err
}

// ListSnapshots returns the newest snapshots of the workspace, at most a page of them.
func (s *Sandbox) ListSnapshots(ctx context.Context, p Place) ([]*sandboxv1.Snapshot, error) {
	page, err := s.snapshots.ListSnapshots(node.At(ctx, p.Node), &sandboxv1.ListSnapshotsRequest{
		Session: p.Session, WorkspaceGeneration: p.Generation, PageSize: listed,
	})
	return page.GetSnapshots(), err
}

// RestoreSnapshot gives the workspace the files of a snapshot.
func (s *Sandbox) RestoreSnapshot(ctx context.Context, call *commonv1.CallRef, id string) error {
	_, err := s.snapshots.RestoreSnapshot(to(ctx, call), &sandboxv1.RestoreSnapshotRequest{Call: call, Snapshot: id})
	return err
}

// DeleteSnapshots deletes snapshots.
func (s *Sandbox) DeleteSnapshots(ctx context.Context, call *commonv1.CallRef, ids ...string) error {
	_, err := s.snapshots.DeleteSnapshots(to(ctx, call), &sandboxv1.DeleteSnapshotsRequest{Call: call, Snapshots: ids})
	return err
}

// ExportSnapshots copies the workspace's snapshots to the object store.
func (s *Sandbox) ExportSnapshots(ctx context.Context, call *commonv1.CallRef) error {
	_, err := s.snapshots.ExportSnapshots(to(ctx, call), &sandboxv1.ExportSnapshotsRequest{Call: call})
	return err
}

// ImportSnapshots makes the workspace from a snapshot in the object store, or from the last one
// if that does not exist. It returns the snapshot.
func (s *Sandbox) ImportSnapshots(ctx context.Context, call *commonv1.CallRef, id string) (*sandboxv1.Snapshot, error) {
	made, err := s.snapshots.ImportSnapshots(to(ctx, call), &sandboxv1.ImportSnapshotsRequest{Call: call, Snapshot: id})
	return made.GetSnapshot(), err
}
