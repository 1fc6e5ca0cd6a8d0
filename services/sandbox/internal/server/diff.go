package server

import (
	"context"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

func (s *snapshotServer) DiffSnapshots(ctx context.Context, r *sandboxv1.DiffSnapshotsRequest) (*sandboxv1.DiffSnapshotsResponse, error) {
	scope, err := scope(ctx, "DiffSnapshots", r.GetSession(), r.GetFrom(), r.GetTo(), r.GetPath())
	if err != nil {
		return nil, status(err)
	}
	var after []byte // bytes: a name may be anything
	if r.GetPageToken() != "" {
		if err := page.Decode(r.GetPageToken(), scope, &after); err != nil {
			return nil, status(err)
		}
	}
	below, err := files.Clean(filename.Decode(r.GetPath()))
	if err != nil {
		return nil, status(err)
	}
	if below == "." {
		below = ""
	}
	k, done, err := s.read(ctx, r.GetSession(), r.GetWorkspaceGeneration())
	if err != nil {
		return nil, status(err)
	}
	defer done()
	changes, more, err := k.store.Diff(ctx, k.tree, snapshot.DiffRequest{
		From: r.GetFrom(), To: r.GetTo(), Path: below, After: string(after), Unified: r.GetUnified(),
		Most: page.Size(r.GetPageSize(), 200, 5000),
	})
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.DiffSnapshotsResponse{}
	for _, c := range changes {
		resp.Changes = append(resp.Changes, changeMessage(c))
	}
	n := fits(resp.GetChanges())
	if resp.Changes = resp.Changes[:n]; more || n < len(changes) {
		resp.NextPageToken = page.Encode(scope, []byte(changes[n-1].Path))
	}
	return resp, nil
}

var statuses = map[snapshot.Status]sandboxv1.ChangeStatus{
	snapshot.Added:       sandboxv1.ChangeStatus_CHANGE_STATUS_ADDED,
	snapshot.Deleted:     sandboxv1.ChangeStatus_CHANGE_STATUS_DELETED,
	snapshot.Modified:    sandboxv1.ChangeStatus_CHANGE_STATUS_MODIFIED,
	snapshot.ModeChanged: sandboxv1.ChangeStatus_CHANGE_STATUS_MODE_CHANGED,
	snapshot.TypeChanged: sandboxv1.ChangeStatus_CHANGE_STATUS_TYPE_CHANGED,
}

func changeMessage(c snapshot.Change) *sandboxv1.FileChange {
	return &sandboxv1.FileChange{
		Path: filename.Encode(c.Path), Status: statuses[c.Status], Before: changedFile(c.Before), After: changedFile(c.After),
		Binary: c.Binary, Unified: c.Unified, Truncated: c.Truncated,
	}
}

var kinds = map[snapshot.Kind]sandboxv1.FileType{
	snapshot.Regular:   sandboxv1.FileType_FILE_TYPE_REGULAR,
	snapshot.Directory: sandboxv1.FileType_FILE_TYPE_DIRECTORY,
	snapshot.Symlink:   sandboxv1.FileType_FILE_TYPE_SYMLINK,
}

func changedFile(e *snapshot.Entry) *sandboxv1.ChangedFile {
	if e == nil {
		return nil
	}
	return &sandboxv1.ChangedFile{Type: kinds[e.Kind], Mode: e.Mode, Size: e.Size}
}
