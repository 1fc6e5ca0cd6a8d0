package store

import (
	"context"
	"encoding/json"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Checkpoints stores the points to which sessions can be rewound. The holder's
// writes make and remove them (Write.Checkpoints, Write.DropCheckpoints). They
// go with their session.
type Checkpoints interface {
	// GetCheckpoint reads a checkpoint, or ErrNotFound.
	GetCheckpoint(ctx context.Context, k Key, id string) (*sessionv1.Checkpoint, error)
	// ListCheckpoints lists a session's checkpoints whose seq is below before (0:
	// all), the last one first. ErrNotFound without the session.
	ListCheckpoints(ctx context.Context, k Key, before int64, limit int) ([]*sessionv1.Checkpoint, error)
}

// SnapshotsJob returns the job that deletes snapshots that no checkpoint names any
// more, at least one. Each snapshot is dropped only once, so the first one makes
// the job's id unique in the session.
func SnapshotsJob(k Key, snapshots []string) Job {
	body, err := json.Marshal(snapshots)
	if err != nil {
		panic(err) // strings always marshal
	}
	return Job{Tenant: k.Tenant, Kind: JobSnapshots, ID: k.Session + "/" + snapshots[0], Session: k.Session, Body: body}
}

// SnapshotsOf returns the session and the snapshots of a SnapshotsJob.
func SnapshotsOf(j Job) (k Key, snapshots []string, err error) {
	if err := json.Unmarshal(j.Body, &snapshots); err != nil {
		return k, nil, fmt.Errorf("read the snapshots of job %s: %w", j.ID, err)
	}
	return Key{Tenant: j.Tenant, Session: j.Session}, snapshots, nil
}
