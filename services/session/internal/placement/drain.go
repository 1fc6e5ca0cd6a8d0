package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// moving bounds how many workspaces leave a node at the same time.
	moving = 4
	// movePatience is how long the next batch waits for these. A workspace that has
	// not left by then is tried again later.
	movePatience = 30 * time.Second
	// moveLook and drainLook are the intervals between looks: at leaving workspaces,
	// and at a node without further workspaces that could leave.
	moveLook, drainLook = 300 * time.Millisecond, 5 * time.Second
	// moveAgain is the least time between two requests to move to a session.
	moveAgain = 10 * time.Minute
	// page is how many sessions one read returns.
	page = 100
)

// draining is the body of a JobDrain.
type draining struct {
	Node  string      `json:"node"`
	After store.Key   `json:"after"`           // the last session that was asked
	Batch []store.Key `json:"batch,omitempty"` // sessions whose workspaces are leaving
	Since time.Time   `json:"since,omitzero"`
}

// Move is the body of a store.CommandMove: the place to leave.
type Move struct {
	Node       string `json:"node"`
	Generation int64  `json:"generation"`
}

// DrainJob returns the job that empties a node for as long as it is draining.
func DrainJob(name string) store.Job {
	return store.Job{Kind: store.JobDrain, ID: name, Body: encode(draining{Node: name})}
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and times always encode
	}
	return body
}

// Drain does a DrainJob: it requests the idle sessions' holders to move their
// workspaces, a few at a time, until the node is no longer draining.
func (w *Workspaces) Drain(ctx context.Context, j store.Job) (*store.Job, error) {
	var d draining
	if err := json.Unmarshal(j.Body, &d); err != nil {
		return nil, backoff.Permanent(fmt.Errorf("read the job that drains a node: %w", err))
	}
	names, err := w.Store.Draining(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, d.Node) || !w.Nodes.Known(d.Node) {
		return nil, nil
	}
	again := func(after time.Duration) (*store.Job, error) {
		return &store.Job{Body: encode(d), After: after}, nil
	}
	if d.Batch, err = w.still(ctx, d.Node, d.Batch); err != nil {
		return nil, err
	}
	if len(d.Batch) > 0 && time.Since(d.Since) < movePatience {
		return again(moveLook)
	}
	d.Batch, d.Since = nil, time.Now()
	if w.Nodes.State(d.Node) != Ready { // the files of a node that does not answer cannot be copied
		return again(drainLook)
	}
	asked := d.After
	if err := w.askToMove(ctx, &d); err != nil {
		return nil, err
	}
	switch {
	case len(d.Batch) > 0:
		return again(moveLook)
	case d.After != asked && d.After != (store.Key{}):
		return again(0)
	}
	d.After = store.Key{}
	return again(drainLook)
}

// still returns the sessions of all whose workspaces are still on a node.
func (w *Workspaces) still(ctx context.Context, node string, all []store.Key) (left []store.Key, err error) {
	for _, k := range all {
		p, _, err := w.Store.PlaceOf(ctx, k)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if p.Node == node || p.Restore {
			left = append(left, k)
		}
	}
	return left, nil
}

// askToMove asks the next idle sessions to move, and records them. Sessions with a
// turn move by themselves.
func (w *Workspaces) askToMove(ctx context.Context, d *draining) error {
	keys, err := w.Store.PlacedOn(ctx, d.Node, d.After, page)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		d.After = store.Key{}
		return nil
	}
	for _, k := range keys {
		d.After = k
		s, err := w.Store.GetSession(ctx, k)
		if errors.Is(err, store.ErrNotFound) || err == nil && s.ActiveTurn != "" {
			continue
		}
		if err != nil {
			return err
		}
		answer, err := w.requestMove(ctx, k, d.Node)
		if err != nil {
			return err
		}
		if !answer.Replayed {
			d.Batch = append(d.Batch, k)
		}
		if len(d.Batch) == moving {
			return nil
		}
	}
	return nil
}

// requestMove asks the holder of a session to move its workspace away from a node, unless it has moved.
func (w *Workspaces) requestMove(ctx context.Context, k store.Key, node string) (store.Answer, error) {
	p, _, err := w.Store.PlaceOf(ctx, k)
	if err != nil || p.Node != node || p.Restore {
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return store.Answer{Replayed: true}, err
	}
	answer, err := w.Store.Submit(ctx, store.Submit{
		Key:     k,
		Command: store.Command{Kind: store.CommandMove, Body: encode(Move{node, p.Generation}), User: "fairlead"},
		Request: store.Request{
			Method: "move", Parent: "sessions/" + k.Session, ID: fmt.Sprintf("%s/%d/%d", node, p.Generation, time.Now().Unix()/int64(moveAgain/time.Second)),
			KeepUntil: time.Now().Add(2 * moveAgain),
		},
	})
	if errors.Is(err, store.ErrNotFound) {
		return store.Answer{Replayed: true}, nil // it was deleted
	}
	return answer, err
}
