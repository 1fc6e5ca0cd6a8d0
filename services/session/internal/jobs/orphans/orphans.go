// Package orphans ends the work of subagents whose parents have ended. A parent ends its subagents
// itself; what it cannot end, because it crashed too often or was not answered, is found here.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// every is the time between two looks at a subagent.
const every = 15 * time.Second

// Job returns the job that watches a subagent's session.
func Job(k store.Key) store.Job {
	return store.Job{Tenant: k.Tenant, Kind: store.JobSubagent, ID: k.Session, Session: k.Session, After: every}
}

// Store is the part of a store that the handler needs.
type Store interface {
	GetSession(ctx context.Context, k store.Key) (*sessionv1.Session, error)
	GetTurn(ctx context.Context, k store.Key, id string) (*sessionv1.Turn, error)
	ListTurns(ctx context.Context, k store.Key, after string, limit int) ([]*sessionv1.Turn, error)
	Inbox
}

// Handler returns the handler of store.JobSubagent. It looks again until the subagent's turn has ended.
func Handler(s Store) jobs.Handler {
	return func(ctx context.Context, j store.Job) (*store.Job, error) {
		k := store.Key{Tenant: j.Tenant, Session: j.Session}
		turns, err := s.ListTurns(ctx, k, "", 1)
		if errors.Is(err, store.ErrNotFound) || err == nil && (len(turns) == 0 || turns[0].EndTime != nil) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the turn of a subagent: %w", err)
		}
		session, err := s.GetSession(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("read the session of a subagent: %w", err)
		}
		over, err := parentEnded(ctx, s, j.Tenant, session.GetParentCall())
		if err == nil && over {
			err = Interrupt(ctx, s, k, jobs.User)
		}
		return &store.Job{After: every}, err
	}
}

// parentEnded reports whether the turn of the call has ended.
func parentEnded(ctx context.Context, s Store, tenant string, call *sessionv1.ParentCall) (bool, error) {
	parent, turn, _ := strings.Cut(strings.TrimPrefix(call.GetTurn(), "sessions/"), "/turns/")
	t, err := s.GetTurn(ctx, store.Key{Tenant: tenant, Session: parent}, turn)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the turn that a subagent works for: %w", err)
	}
	return t.EndTime != nil, nil
}

// Inbox is the part of a store that takes commands.
type Inbox interface {
	Submit(ctx context.Context, s store.Submit) (store.Answer, error)
}

// Interrupt ends all turns of a subagent's session, if it exists.
func Interrupt(ctx context.Context, s Inbox, k store.Key, user string) error {
	body, err := proto.Marshal(&sessionv1.InterruptSessionRequest{Name: "sessions/" + k.Session, CancelQueued: true})
	if err != nil {
		return fmt.Errorf("marshal an interrupt: %w", err)
	}
	_, err = s.Submit(ctx, store.Submit{
		Key: k, Command: store.Command{Kind: store.CommandInterrupt, User: user, Body: body}, CancelQueued: true,
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("stop a subagent: %w", err)
	}
	return nil
}
