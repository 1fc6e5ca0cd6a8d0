package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/remote"
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

// Repositories clones a session's repositories into its workspace, and has them pushed.
type Repositories struct {
	sandbox Sandbox
	news    *news
	branch  string // the pattern of sessions' own branches
}

// SessionBranch returns the name of a session's own branch, by the operator's
// pattern.
func SessionBranch(pattern, session string) string {
	return strings.ReplaceAll(pattern, "{session}", session)
}

// clone clones the agent's missing repositories and returns those that it could
// not clone. The call ids are fixed for the session: a repository that was cloned once is not
// cloned again, even if it was removed since. A restore reverts both: the sandbox then knows
// the clones that it knew when the restored files were current.
func (x *Repositories) clone(sc state.Scope) (failed []repositoryFailure) {
	for _, r := range sc.Spec.Repositories {
		err := sc.Patiently(nil, func() error { return x.cloneOne(sc, r) })
		if errors.Is(err, remote.ErrRepositoryExists) {
			bad := sc.Patiently(nil, func() error { return x.ownBranch(sc, r) })
			if bad == nil || sc.Ended() {
				continue
			}
			if !errors.Is(bad, remote.ErrNoRepository) {
				sc.Logger.WarnContext(sc, "cannot put a repository of a session on its branch", "session", sc.Lease.Session, "directory", r.Name(), "error", bad)
				failed = append(failed, repositoryFailure{branchNotMade, fmt.Sprintf("The session's own branch, %s, could not be made in repos/%s, which stays on the branch that it is on: %s",
					SessionBranch(x.branch, sc.Lease.Session), r.Name(), state.Explain(bad))})
				continue
			}
		}
		if err == nil || sc.Ended() {
			continue
		}
		sc.Logger.WarnContext(sc, "cannot clone a repository of a session", "session", sc.Lease.Session, "directory", r.Name(), "error", err)
		failed = append(failed, repositoryFailure{notCloned, fmt.Sprintf("The repository %s could not be cloned to repos/%s: %s", r.URL, r.Name(), state.Explain(err))})
	}
	return failed
}

func (x *Repositories) cloneOne(sc state.Scope, r agent.Repository) error {
	ask := &sandboxv1.CloneRepositoryRequest{
		Call: sc.CallRef(cloneCall(r)), Url: r.URL, Ref: r.Ref, Directory: r.Name(), Depth: r.Depth,
	}
	if r.OwnBranch() {
		ask.Branch = SessionBranch(x.branch, sc.Lease.Session)
	}
	made, err := x.sandbox.CloneRepository(sc, ask)
	if err != nil || made.GetRepeated() {
		return err
	}
	x.news.add(&sessionv1.Event{Body: &sessionv1.Event_RepositoryCloned{RepositoryCloned: &sessionv1.RepositoryCloned{
		Directory: r.Name(), Url: r.URL, Branch: made.GetRepository().GetBranch(), Commit: made.GetRepository().GetCommit(),
	}}})
	return nil
}

// ownBranch creates the session's branch, from the current commit, in a repository that the
// session did not clone itself: that of a fork or an import is on another session's branch.
// It leaves a repository alone that already has the branch but is on another one. A
// directory that is not a repository is remote.ErrNoRepository, even if no branch is wanted.
func (x *Repositories) ownBranch(sc state.Scope, r agent.Repository) error {
	if !r.OwnBranch() {
		return x.present(sc, r)
	}
	err := x.sandbox.CreateBranch(sc, sc.CallRef(cloneCall(r)+".branch"), r.Name(), SessionBranch(x.branch, sc.Lease.Session))
	if errors.Is(err, remote.ErrBranchExists) {
		return nil
	}
	return err
}

// present returns remote.ErrNoRepository if the repository's directory is not a repository. It
// returns nil if it cannot look.
func (x *Repositories) present(sc state.Scope, r agent.Repository) error {
	p := sc.Place()
	found, err := x.sandbox.ListRepositories(sc, remote.Place{Session: "sessions/" + sc.Lease.Session, Node: p.Node, Generation: p.Generation})
	if err != nil {
		sc.Logger.WarnContext(sc, "cannot look at the repositories of a session", "session", sc.Lease.Session, "error", err)
		return nil
	}
	if slices.ContainsFunc(found, func(f *sandboxv1.Repository) bool { return f.GetDirectory() == r.Name() }) {
		return nil
	}
	return remote.ErrNoRepository
}

// cloneCall returns the id of the call that clones a repository: the same in every
// turn.
func cloneCall(r agent.Repository) string {
	sum := sha256.Sum256(fmt.Append(nil, r.URL, "\x00", r.Ref, "\x00", r.Name(), "\x00", r.Depth))
	return "clone." + hex.EncodeToString(sum[:12])
}

// report warns of repositories that are not as configured, and returns notes of them for the model.
func report(sc state.Scope, failed []repositoryFailure) (notes string, err error) {
	if len(failed) == 0 {
		return "", nil
	}
	var write store.Write
	var texts []string
	for _, f := range failed {
		texts = append(texts, f.text)
		write.Events = append(write.Events, sc.StepEvent(state.Warning(f.reason, f.text+" It is tried again in the next turn.")))
	}
	return strings.Join(texts, "\n"), sc.Append(write)
}

// Pushes returns the jobs of a turn's end: one for each repository to push. An
// undone turn pushes nothing: its files are those of before.
func (x *Repositories) Pushes(sc state.Scope, t *state.Turn) []store.Job {
	if t.Undo || t.Proto.Steps == 0 {
		return nil
	}
	var all []store.Job
	add := func(id string, p jobs.Push) {
		p.Turn, p.Epoch, p.User = t.Proto.Name, sc.Lease.Epoch, t.Run.User
		body, err := json.Marshal(p)
		if err != nil {
			panic(err) // strings and numbers always marshal
		}
		all = append(all, store.Job{
			Tenant: sc.Lease.Tenant, Kind: store.JobPush, ID: sc.Lease.Session + "/" + t.ID + "/" + id, Session: sc.Lease.Session, Body: body,
		})
	}
	for i, r := range sc.Spec.Repositories {
		if !r.PushedAtTurnEnd() {
			continue
		}
		p := jobs.Push{URL: r.URL, Directory: r.Name()}
		if r.OwnBranch() {
			p.Branch = SessionBranch(x.branch, sc.Lease.Session)
		}
		add(strconv.Itoa(i), p)
	}
	for _, r := range added(sc) {
		add("added/"+r.Directory, jobs.Push{URL: r.Url, Directory: r.Directory, Branch: r.Branch})
	}
	return all
}

// added returns the repositories that were added to the session and are pushed. They may have been added
// since the session was loaded.
func added(sc state.Scope) []*sessionv1.PushedRepository {
	now, err := sc.Store.GetSession(sc, sc.Lease.Key)
	if err != nil {
		return sc.Proto.GetPushedRepositories() // the write that ends the turn finds the same fault
	}
	return now.PushedRepositories
}
