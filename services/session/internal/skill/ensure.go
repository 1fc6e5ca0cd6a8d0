package skill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/claudecode/relaytree"
	"github.com/fairlead/fairlead/services/session/internal/remote"
)

// Sandbox is what Ensure needs of the sandbox service.
type Sandbox interface {
	EnsureWorkspace(ctx context.Context, r *sandboxv1.EnsureWorkspaceRequest) (*sandboxv1.EnsureWorkspaceResponse, error)
	PutTree(ctx context.Context, node, digest string, from io.Reader) error
}

// Made says how a workspace was made.
type Made struct {
	Created bool // it is new
	Missing
}

// Missing is what a workspace goes on without.
type Missing struct {
	Skills []agent.Skill // those that were deleted
	Mounts []string      // the optional ones that the acting user does not get
}

// Ensure makes a workspace of a tenant with skills, and with the relay of its runtime. It gives the node those that
// it lacks. A skill that was deleted is left out.
func (l *Library) Ensure(ctx context.Context, to Sandbox, tenant string, skills []agent.Skill, r *sandboxv1.EnsureWorkspaceRequest) (made Made, err error) {
	var missing Missing
	got, err := to.EnsureWorkspace(ctx, r)
	if !errors.Is(err, remote.ErrNoTree) || len(r.GetTrees().GetTrees()) == 0 {
		missing.Mounts = got.GetMissingMounts()
		return Made{got.GetCreated(), missing}, err
	}
	there := &sandboxv1.WorkspaceTrees{}
	for _, t := range r.GetTrees().GetTrees() {
		if t.GetName() != relaytree.Name {
			continue
		}
		relay, err := relaytree.Get()
		if err != nil {
			return made, remote.Refused(err.Error())
		}
		if err := to.PutTree(ctx, r.GetCall().GetNode(), relay.Digest, bytes.NewReader(relay.Archive)); err != nil {
			return made, fmt.Errorf("put the relay of the runtime on the sandbox node: %w", err)
		}
		there.Trees = append(there.Trees, t)
	}
	for _, s := range skills {
		switch err := l.give(ctx, to, r.GetCall().GetNode(), tenant, s); {
		case errors.Is(err, ErrGone):
			missing.Skills = append(missing.Skills, s)
		case err != nil:
			return made, err
		default:
			there.Trees = append(there.Trees, &sandboxv1.WorkspaceTree{Name: s.Name, Digest: s.Digest})
		}
	}
	r.Trees = there
	got, err = to.EnsureWorkspace(ctx, r)
	missing.Mounts = got.GetMissingMounts()
	return Made{got.GetCreated(), missing}, err
}

// give puts a skill on a node.
func (l *Library) give(ctx context.Context, to Sandbox, node, tenant string, s agent.Skill) error {
	from, err := l.Open(ctx, tenant, s)
	switch {
	case errors.Is(err, ErrGone):
		return err
	case err != nil:
		return remote.Unavailable(err.Error())
	}
	defer func() { _ = from.Close() }()
	if err := to.PutTree(ctx, node, s.Digest, from); err != nil {
		return fmt.Errorf("put skill %s on the sandbox node: %w", s.Label(), err)
	}
	return nil
}
