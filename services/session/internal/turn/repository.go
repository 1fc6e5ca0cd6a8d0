package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/push"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// SessionBranch is the name of a session's own branch, by the operator's pattern.
func SessionBranch(pattern, session string) string {
	return strings.ReplaceAll(pattern, "{session}", session)
}

// cloneRepositories clones the agent's repositories that are not there, and tells of
// those that cannot be. The call ids are the session's: one that was cloned once is not
// cloned again, even when it was removed since; sandbox forgets those that a restore takes away.
func (w *Worker) cloneRepositories(ctx context.Context) (failed []string) {
	for _, r := range w.spec.Repositories {
		err := w.patiently(ctx, nil, func() error { return w.clone(ctx, r) })
		if apierr.Reason(err) == "REPOSITORY_EXISTS" {
			if err = w.patiently(ctx, nil, func() error { return w.ownBranch(ctx, r) }); err != nil && ctx.Err() == nil {
				w.deps.Log.WarnContext(ctx, "cannot put a repository of a session on its branch", "session", w.lease.Session, "directory", r.Name(), "error", err)
				failed = append(failed, fmt.Sprintf("The repository in repos/%s could not be put on the session's own branch: %s", r.Name(), explain(err)))
			}
			continue
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		w.deps.Log.WarnContext(ctx, "cannot clone a repository of a session", "session", w.lease.Session, "directory", r.Name(), "error", err)
		failed = append(failed, fmt.Sprintf("The repository %s could not be cloned to repos/%s: %s", r.URL, r.Name(), explain(err)))
	}
	return failed
}

func (w *Worker) clone(ctx context.Context, r agent.Repository) error {
	ask := &sandboxv1.CloneRepositoryRequest{
		Call: w.callRef(cloneCall(r)), Url: r.URL, Ref: r.Ref, Directory: r.Name(), Depth: r.Depth,
	}
	if r.OwnBranch() {
		ask.Branch = SessionBranch(w.deps.RepositoryBranch, w.lease.Session)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.deps.Repositories.CloneRepository(ctx, ask)
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ownBranch gives the session its branch in a repository that it did not clone itself, as
// a fork's or an import's, which is on another session's: from where it stands. What is no
// repository, or has the branch already and is on another one, is as somebody made it.
func (w *Worker) ownBranch(ctx context.Context, r agent.Repository) error {
	if !r.OwnBranch() {
		return nil
	}
	_, err := w.deps.Repositories.CreateBranch(ctx, &sandboxv1.CreateBranchRequest{
		Call: w.callRef(cloneCall(r) + ".branch"), Directory: r.Name(), Branch: SessionBranch(w.deps.RepositoryBranch, w.lease.Session),
	})
	switch apierr.Reason(err) {
	case "BRANCH_EXISTS", "REPOSITORY_NOT_FOUND":
		return nil
	}
	return err
}

// cloneCall is the id of the call that clones a repository: the same in every turn.
func cloneCall(r agent.Repository) string {
	sum := sha256.Sum256(fmt.Append(nil, r.URL, "\x00", r.Ref, "\x00", r.Name(), "\x00", r.Depth))
	return "clone." + hex.EncodeToString(sum[:12])
}

// tellRepositories warns of repositories that could not be cloned, once in a turn. The
// model reads it with the results of the calls that waited for them.
func (w *Worker) tellRepositories(ctx context.Context, warm *warming) error {
	failed := warm.failed
	if len(failed) == 0 {
		return nil
	}
	warm.failed, w.untold = nil, strings.Join(failed, "\n")
	var write store.Write
	for _, text := range failed {
		write.Events = append(write.Events, w.event(w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
			Reason: "REPOSITORY_NOT_CLONED", Message: text + " It is tried again in the next turn.",
		}}}))
	}
	return w.log.Append(ctx, write)
}

// withUntold adds to the last result what the model has to know besides.
func (w *Worker) withUntold(blocks []*sessionv1.Block) {
	if w.untold == "" || len(blocks) == 0 {
		return
	}
	last := blocks[len(blocks)-1]
	r := proto.CloneOf(last.GetToolResult())
	r.Content = append(r.Content, textContent("Note: "+w.untold))
	last.Kind = &sessionv1.Block_ToolResult{ToolResult: r}
	w.untold = ""
}

// pushes are the jobs that the end of a turn leaves: one for each repository that is
// pushed then. The files of a turn that was undone are those of before.
func (w *Worker) pushes(t *active) []store.Job {
	var all []store.Job
	for i, r := range w.spec.Repositories {
		if !r.PushedAtTurnEnd() || t.undo || t.turn.Steps == 0 {
			continue
		}
		p := push.Push{Turn: t.turn.Name, URL: r.URL, Directory: r.Name(), Epoch: w.lease.Epoch, User: t.run.User}
		if r.OwnBranch() {
			p.Branch = SessionBranch(w.deps.RepositoryBranch, w.lease.Session)
		}
		body, err := json.Marshal(p)
		if err != nil {
			panic(err) // strings and numbers always marshal
		}
		all = append(all, store.Job{
			Tenant: w.lease.Tenant, Kind: store.JobPush, ID: fmt.Sprintf("%s/%s/%d", w.lease.Session, t.id, i), Session: w.lease.Session, Body: body,
		})
	}
	return all
}

// takeRepository appends what became of a push.
func (w *Worker) takeRepository(ctx context.Context, c store.Command) error {
	e := &sessionv1.Event{}
	if err := proto.Unmarshal(c.Body, e); err != nil {
		return fmt.Errorf("read what became of a push: %w", err)
	}
	return w.log.Append(ctx, store.Write{Consume: []int64{c.ID}, Events: []*sessionv1.Event{e}})
}
