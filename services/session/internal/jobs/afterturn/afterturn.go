// Package afterturn does the follow-up work of ended turns: it indexes their
// messages at once, and folds their deltas later, when they are probably no
// longer followed.
package afterturn

import (
	"context"
	"fmt"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Store is the part of a store that the handler needs.
type Store interface {
	GetTurn(ctx context.Context, k store.Key, id string) (*sessionv1.Turn, error)
	ListEvents(ctx context.Context, k store.Key, afterSeq int64, limit, maxBytes int) ([]*sessionv1.Event, error)
	FoldEvents(ctx context.Context, k store.Key, first, last int64, events []*sessionv1.Event) error
	IndexMessages(ctx context.Context, k store.Key, limit int) (int, error)
}

// Handler does each store.JobAfterTurn.
type Handler struct {
	store     Store
	foldAfter time.Duration
}

// New returns a handler that folds foldAfter after the end of a turn.
func New(s Store, foldAfter time.Duration) *Handler {
	return &Handler{store: s, foldAfter: foldAfter}
}

// The body of a job says what is left to do; empty means everything.
const onlyFold = "fold"

// indexBatch is how many messages are indexed at one time.
const indexBatch = 50

// Handle does the job: first the messages, then, later, the deltas.
func (h *Handler) Handle(ctx context.Context, j store.Job) (*store.Job, error) {
	session, turn, ok := strings.Cut(j.ID, "/")
	if !ok {
		return nil, fmt.Errorf("the job %q names no turn", j.ID)
	}
	k := store.Key{Tenant: j.Tenant, Session: session}
	if string(j.Body) != onlyFold {
		err := h.index(ctx, k)
		if err != nil && !sessionDeleted(err) {
			return nil, err
		}
		return &store.Job{Body: []byte(onlyFold), After: h.foldAfter}, nil
	}
	found, err := h.store.GetTurn(ctx, k, turn)
	if err == nil {
		err = h.fold(ctx, k, found.AfterSeq, found.Name)
	}
	if sessionDeleted(err) {
		return nil, nil
	}
	return nil, err
}

// index indexes all messages of the session that are not indexed yet.
func (h *Handler) index(ctx context.Context, k store.Key) error {
	for {
		n, err := h.store.IndexMessages(ctx, k, indexBatch)
		if err != nil {
			return fmt.Errorf("index messages: %w", err)
		}
		if n < indexBatch {
			return nil
		}
	}
}
