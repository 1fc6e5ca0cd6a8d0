package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/jobs/push"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Reasons of warnings about an agent's repositories.
const (
	notCloned     = "REPOSITORY_NOT_CLONED"
	branchNotMade = "REPOSITORY_BRANCH_NOT_MADE"
)

// repositoryFailure is why a repository of the agent is not as configured.
type repositoryFailure struct{ reason, text string }

// SessionBranch returns the name of a session's own branch, by the operator's
// pattern.
func SessionBranch(pattern, session string) string {
	return strings.ReplaceAll(pattern, "{session}", session)
}

// cloneRepositories clones the agent's missing repositories and returns those that it could
// not clone. The call ids are fixed for the session: a repository that was cloned once is not
// cloned again, even if it was removed since. A restore reverts both: the sandbox then knows
// the clones that it knew when the restored files were current.
func (w *Worker) cloneRepositories(ctx context.Context) (failed []repositoryFailure) {
	for _, r := range w.Spec.Repositories {
		err := w.patiently(ctx, nil, func() error { return w.clone(ctx, r) })
		if apierr.Reason(err) == "REPOSITORY_EXISTS" {
			bad := w.patiently(ctx, nil, func() error { return w.ownBranch(ctx, r) })
			if bad == nil || ctx.Err() != nil {
				continue
			}
			if apierr.Reason(bad) != "REPOSITORY_NOT_FOUND" {
				w.Logger.WarnContext(ctx, "cannot put a repository of a session on its branch", "session", w.Lease.Session, "directory", r.Name(), "error", bad)
				failed = append(failed, repositoryFailure{branchNotMade, fmt.Sprintf("The session's own branch, %s, could not be made in repos/%s, which stays on the branch that it is on: %s",
					SessionBranch(w.deps.RepositoryBranch, w.Lease.Session), r.Name(), state.Explain(bad))})
				continue
			}
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		w.Logger.WarnContext(ctx, "cannot clone a repository of a session", "session", w.Lease.Session, "directory", r.Name(), "error", err)
		failed = append(failed, repositoryFailure{notCloned, fmt.Sprintf("The repository %s could not be cloned to repos/%s: %s", r.URL, r.Name(), state.Explain(err))})
	}
	return failed
}

func (w *Worker) clone(ctx context.Context, r agent.Repository) error {
	ask := &sandboxv1.CloneRepositoryRequest{
		Call: w.CallRef(cloneCall(r)), Url: r.URL, Ref: r.Ref, Directory: r.Name(), Depth: r.Depth,
	}
	if r.OwnBranch() {
		ask.Branch = SessionBranch(w.deps.RepositoryBranch, w.Lease.Session)
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

// ownBranch creates the session's branch, from the current commit, in a repository that the
// session did not clone itself: that of a fork or an import is on another session's branch.
// It leaves a repository alone that already has the branch but is on another one. A
// directory that is not a repository is REPOSITORY_NOT_FOUND, even if no branch is wanted.
func (w *Worker) ownBranch(ctx context.Context, r agent.Repository) error {
	if !r.OwnBranch() {
		return w.present(ctx, r)
	}
	_, err := w.deps.Repositories.CreateBranch(ctx, &sandboxv1.CreateBranchRequest{
		Call: w.CallRef(cloneCall(r) + ".branch"), Directory: r.Name(), Branch: SessionBranch(w.deps.RepositoryBranch, w.Lease.Session),
	})
	if apierr.Reason(err) == "BRANCH_EXISTS" {
		return nil
	}
	return err
}

// present returns REPOSITORY_NOT_FOUND if the repository's directory is not a repository. It
// returns nil if it cannot look.
func (w *Worker) present(ctx context.Context, r agent.Repository) error {
	found, err := w.deps.Repositories.ListRepositories(ctx, &sandboxv1.ListRepositoriesRequest{
		Session: "sessions/" + w.Lease.Session, WorkspaceGeneration: w.Place().Generation,
	})
	if err != nil {
		w.Logger.WarnContext(ctx, "cannot look at the repositories of a session", "session", w.Lease.Session, "error", err)
		return nil
	}
	if slices.ContainsFunc(found.GetRepositories(), func(f *sandboxv1.Repository) bool { return f.GetDirectory() == r.Name() }) {
		return nil
	}
	return apierr.New(codes.NotFound, "sandbox.fairlead.dev", "REPOSITORY_NOT_FOUND", "what is there is no repository")
}

// cloneCall returns the id of the call that clones a repository: the same in every
// turn.
func cloneCall(r agent.Repository) string {
	sum := sha256.Sum256(fmt.Append(nil, r.URL, "\x00", r.Ref, "\x00", r.Name(), "\x00", r.Depth))
	return "clone." + hex.EncodeToString(sum[:12])
}

// tellRepositories warns of repositories that are not as configured, once in a turn. The
// model reads it with the results of the calls that waited for them.
func (w *Worker) tellRepositories(ctx context.Context) error {
	failed := w.warm.failed
	if len(failed) == 0 {
		return nil
	}
	w.warm.failed = nil
	var write store.Write
	var told []string
	for _, f := range failed {
		told = append(told, f.text)
		write.Events = append(write.Events, w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
			Reason: f.reason, Message: f.text + " It is tried again in the next turn.",
		}}}))
	}
	w.untold = strings.Join(told, "\n")
	return w.Log.Append(ctx, write)
}

// withUntold adds pending notes for the model to the last result.
func (w *Worker) withUntold(blocks []*sessionv1.Block) {
	if w.untold == "" || len(blocks) == 0 {
		return
	}
	last := blocks[len(blocks)-1]
	r := proto.CloneOf(last.GetToolResult())
	r.Content = append(r.Content, state.Text("Note: "+w.untold))
	last.Kind = &sessionv1.Block_ToolResult{ToolResult: r}
	w.untold = ""
}

// pushes returns the jobs of a turn's end: one for each repository to push. An
// undone turn pushes nothing: its files are those of before.
func (w *Worker) pushes(t *state.Turn) []store.Job {
	var all []store.Job
	for i, r := range w.Spec.Repositories {
		if !r.PushedAtTurnEnd() || t.Undo || t.Proto.Steps == 0 {
			continue
		}
		p := push.Push{Turn: t.Proto.Name, URL: r.URL, Directory: r.Name(), Epoch: w.Lease.Epoch, User: t.Run.User}
		if r.OwnBranch() {
			p.Branch = SessionBranch(w.deps.RepositoryBranch, w.Lease.Session)
		}
		body, err := json.Marshal(p)
		if err != nil {
			panic(err) // strings and numbers always marshal
		}
		all = append(all, store.Job{
			Tenant: w.Lease.Tenant, Kind: store.JobPush, ID: fmt.Sprintf("%s/%s/%d", w.Lease.Session, t.ID, i), Session: w.Lease.Session, Body: body,
		})
	}
	return all
}

// takeRepository appends the result of a push.
func (w *Worker) takeRepository(ctx context.Context, c store.Command) error {
	e := &sessionv1.Event{}
	if err := proto.Unmarshal(c.Body, e); err != nil {
		return fmt.Errorf("read what became of a push: %w", err)
	}
	return w.Log.Append(ctx, store.Write{Consume: []int64{c.ID}, Events: []*sessionv1.Event{e}})
}
