package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// subagentLook is the time between two looks at a subagent.
const subagentLook = 15 * time.Second

// SubagentJob returns the job that watches a subagent's session.
func SubagentJob(k store.Key) store.Job {
	return store.Job{Tenant: k.Tenant, Kind: store.JobSubagent, ID: k.Session, Session: k.Session, After: subagentLook}
}

// watchSubagent does a store.JobSubagent: it ends the work of a subagent whose parent has ended, and looks again until
// the subagent's turn has ended. A parent ends its subagents itself; what it cannot end, because it crashed too often or
// was not answered, is found here.
func (d *Deps) watchSubagent(ctx context.Context, j store.Job) (*store.Job, error) {
	k := store.Key{Tenant: j.Tenant, Session: j.Session}
	turns, err := d.Store.ListTurns(ctx, k, "", 1)
	if errors.Is(err, store.ErrNotFound) || err == nil && (len(turns) == 0 || turns[0].EndTime != nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the turn of a subagent: %w", err)
	}
	session, err := d.Store.GetSession(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("read the session of a subagent: %w", err)
	}
	over, err := d.parentEnded(ctx, j.Tenant, session.GetParentCall())
	if err == nil && over {
		err = InterruptSubagent(ctx, d.Store, k, User)
	}
	return &store.Job{After: subagentLook}, err
}

// parentEnded reports whether the turn of the call has ended.
func (d *Deps) parentEnded(ctx context.Context, tenant string, call *sessionv1.ParentCall) (bool, error) {
	parent, turn, _ := strings.Cut(strings.TrimPrefix(call.GetTurn(), "sessions/"), "/turns/")
	t, err := d.Store.GetTurn(ctx, store.Key{Tenant: tenant, Session: parent}, turn)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the turn that a subagent works for: %w", err)
	}
	return t.EndTime != nil, nil
}

// InterruptSubagent ends all turns of a subagent's session, if it exists.
func InterruptSubagent(ctx context.Context, s store.Store, k store.Key, user string) error {
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
