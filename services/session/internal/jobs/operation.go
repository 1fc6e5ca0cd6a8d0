package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/cenkalti/backoff/v5"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// firstLook and lastLook bound the interval between looks: an eighth of the
	// operation's running time, so that the log is only a little late.
	firstLook = time.Second
	lastLook  = 30 * time.Second
	// keepAnswers is how long the request id of a report is kept.
	keepAnswers = 24 * time.Hour
)

// Operation is an operation to wait for, the body of a store.JobOperation.
type Operation struct {
	Name string `json:"name"` // `operations/{operation}`
	Call string `json:"call"` // the call that started it
	Turn string `json:"turn"` // full name
	Step int32  `json:"step"`
}

// report is the body of a store.CommandOperation.
type report struct {
	Operation
	Ended []byte `json:"ended"` // a toolsv1.Operation with its state, progress and network
}

// OperationJob returns the job that waits for an operation of a session.
func OperationJob(k store.Key, o Operation) store.Job {
	body, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and a number always marshal
	}
	return store.Job{Tenant: k.Tenant, Kind: store.JobOperation, ID: k.Session + "/" + o.Call, Session: k.Session, Body: body, After: firstLook}
}

// ReadOperation parses the body of a store.CommandOperation.
func ReadOperation(body []byte) (Operation, *toolsv1.Operation, error) {
	var r report
	if err := json.Unmarshal(body, &r); err != nil {
		return r.Operation, nil, fmt.Errorf("read the outcome of an operation: %w", err)
	}
	ended := &toolsv1.Operation{}
	if err := proto.Unmarshal(r.Ended, ended); err != nil {
		return r.Operation, nil, fmt.Errorf("read the outcome of an operation: %w", err)
	}
	return r.Operation, ended, nil
}

// awaitOperation does a store.JobOperation: it looks at the operation, and tells the
// session when it has ended. The log records then what the operation's command did with
// the network, even if its turn has ended.
func (d *Deps) awaitOperation(ctx context.Context, j store.Job) (*store.Job, error) {
	var o Operation
	if err := json.Unmarshal(j.Body, &o); err != nil {
		return nil, backoff.Permanent(fmt.Errorf("read the operation of job %s: %w", j.ID, err))
	}
	found, err := d.Tools.GetOperation(ctx, o.Name)
	switch {
	case errors.Is(err, remote.ErrNoOperation):
		return nil, nil // it was deleted with all its data
	case err != nil:
		return nil, fmt.Errorf("look at %s of sessions/%s: %w", o.Name, j.Session, err)
	case found.State == toolsv1.OperationState_OPERATION_STATE_RUNNING:
		ran := time.Since(found.CreateTime.AsTime())
		return &store.Job{Body: j.Body, After: min(max(ran/8, firstLook), lastLook)}, nil
	}
	return nil, d.reportOperation(ctx, j, o, found)
}

// reportOperation puts a report into the session's inbox; the holder appends it.
func (d *Deps) reportOperation(ctx context.Context, j store.Job, o Operation, ended *toolsv1.Operation) error {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(&toolsv1.Operation{State: ended.State, Progress: ended.Progress, Network: ended.Network})
	if err != nil {
		return fmt.Errorf("marshal the outcome of an operation: %w", err)
	}
	body, err := json.Marshal(report{o, raw})
	if err != nil {
		return fmt.Errorf("marshal the outcome of an operation: %w", err)
	}
	sum := sha256.Sum256(body)
	_, err = d.Store.Submit(ctx, store.Submit{
		Key:     store.Key{Tenant: j.Tenant, Session: j.Session},
		Command: store.Command{Kind: store.CommandOperation, CallID: o.Call, Body: body, User: User},
		Request: store.Request{Method: "attend", Parent: "sessions/" + j.Session, ID: j.ID, Digest: sum[:], KeepUntil: time.Now().Add(keepAnswers)},
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil // the session was deleted
	}
	return err
}
