package agent

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Repository is a Git repository that a session begins with. The sandbox service
// checks the remote, because it knows what its operator allows.
type Repository struct {
	URL       string `key:"url" json:"url" help:"the remote, as https://host/path"`
	Ref       string `key:"ref" json:"ref,omitempty" help:"the branch, tag or full commit id to check out; empty: the remote's default branch"`
	Directory string `key:"directory" json:"directory,omitempty" help:"the directory below repos/; empty: the last part of the URL"`
	Depth     int32  `key:"depth" json:"depth,omitempty" help:"how many commits of history; 0: all"`
	Branch    string `key:"branch" json:"branch,omitempty" help:"session (a branch of the session's own, the default) or none"`
	Push      string `key:"push" json:"push,omitempty" help:"turn_end (push the branch at the end of each turn) or never, the default"`
}

// Values of a repository's Branch and Push.
const (
	BranchSession = "session"
	BranchNone    = "none"
	PushNever     = "never"
	PushTurnEnd   = "turn_end"
)

var directoryForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Name returns the repository's directory.
func (r Repository) Name() string {
	path := strings.TrimSuffix(r.URL, "/")
	return cmp.Or(r.Directory, strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".git"))
}

// OwnBranch reports whether the session works on a branch of its own.
func (r Repository) OwnBranch() bool { return cmp.Or(r.Branch, BranchSession) == BranchSession }

// PushedAtTurnEnd reports whether the branch is pushed at the end of each turn.
func (r Repository) PushedAtTurnEnd() bool { return r.Push == PushTurnEnd }

func (s Spec) checkRepositories() error {
	seen := map[string]bool{}
	for i, r := range s.Repositories {
		switch name := r.Name(); {
		case !strings.HasPrefix(r.URL, "https://"):
			return fmt.Errorf("repository %d: url %q does not begin with https://", i+1, r.URL)
		case !directoryForm.MatchString(name):
			return fmt.Errorf("repository %d: directory %q: letters, digits, dots, dashes and underscores, at most 100", i+1, name)
		case seen[name]:
			return fmt.Errorf("repository %d: there are two with the directory %q", i+1, name)
		case r.Depth < 0:
			return fmt.Errorf("repository %d: depth %d is negative", i+1, r.Depth)
		case r.Branch != "" && r.Branch != BranchSession && r.Branch != BranchNone:
			return fmt.Errorf("repository %d: branch %q is neither session nor none", i+1, r.Branch)
		case r.Push != "" && r.Push != PushNever && r.Push != PushTurnEnd:
			return fmt.Errorf("repository %d: push %q is neither never nor turn_end", i+1, r.Push)
		default:
			seen[name] = true
		}
	}
	return nil
}

func (s Spec) repositoriesProto() []*sessionv1.AgentRepository {
	var all []*sessionv1.AgentRepository
	for _, r := range s.Repositories {
		all = append(all, &sessionv1.AgentRepository{
			Url: r.URL, Ref: r.Ref, Directory: r.Name(), Depth: r.Depth, Branch: cmp.Or(r.Branch, BranchSession), Push: cmp.Or(r.Push, PushNever),
		})
	}
	return all
}
