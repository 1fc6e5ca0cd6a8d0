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
	// moving is how many workspaces leave a node at the same time.
	moving = 4
	// movePatience is how long the others wait for them. One that is not gone by then
	// is tried again later.
	movePatience = 30 * time.Second
	// moveLook and drainLook are the times between two looks: at those that leave, and
	// at a node that has nothing left that could.
	moveLook, drainLook = 300 * time.Millisecond, 5 * time.Second
	// moveAgain is how often a session is asked to move at most.
	moveAgain = 10 * time.Minute
	// page is how many sessions are looked at together.
	page = 100
)

// draining is the body of a JobDrain.
type draining struct {
	Node  string      `json:"node"`
	After store.Key   `json:"after"`           // up to here sessions have been asked
	Batch []store.Key `json:"batch,omitempty"` // those that are on their way
	Since time.Time   `json:"since,omitzero"`
}

// Move is the body of a store.CommandMove: what the workspace is to leave.
type Move struct {
	Node       string `json:"node"`
	Generation int64  `json:"generation"`
}

// DrainJob empties a node for as long as it is drained.
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

// Drain does a DrainJob: it asks the sessions that rest to have their workspaces moved
// by whoever holds them, a few at a time, until the node is not drained any more.
func (w *Work) Drain(ctx context.Context, j store.Job) (*store.Job, error) {
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
	if w.Nodes.State(d.Node) != Ready { // what a node has that does not answer cannot be taken along
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

// still are those of some sessions whose workspaces are on a node.
func (w *Work) still(ctx context.Context, node string, all []store.Key) (left []store.Key, err error) {
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

// askToMove asks the next sessions that rest, and takes down which. Those with a turn
// move by themselves.
func (w *Work) askToMove(ctx context.Context, d *draining) error {
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
		answer, err := w.ask(ctx, k, d.Node)
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

func (w *Work) ask(ctx context.Context, k store.Key, node string) (store.Answer, error) {
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
