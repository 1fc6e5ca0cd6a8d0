package integration

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
)

func (m *remote) ListRepositories(context.Context, *sandboxv1.ListRepositoriesRequest) (*sandboxv1.ListRepositoriesResponse, error) {
	m.repositories.Lock()
	defer m.repositories.Unlock()
	return &sandboxv1.ListRepositoriesResponse{Repositories: m.present}, m.blind
}

// What is in a repository's place may be a repository, with which the session makes do, or
// anything else: then there is no repository, and that is told.
func TestWhatIsInTheWayOfARepositoryIsTold(t *testing.T) {
	t.Parallel()
	refusal := func(reason string) error { return apierr.New(codes.NotFound, "sandbox.fairlead.dev", reason, "no") }
	app := []*sandboxv1.Repository{{Directory: "other"}, {Directory: "app"}}
	for name, tc := range map[string]struct {
		branch    string
		branching error
		present   []*sandboxv1.Repository
		blind     error
		told      string // the reason
	}{
		"no repository":               {branching: refusal("REPOSITORY_NOT_FOUND"), told: "REPOSITORY_NOT_CLONED"},
		"one that has the branch":     {branching: refusal("BRANCH_EXISTS")},
		"none, and no branch":         {branch: "none", present: app[:1], told: "REPOSITORY_NOT_CLONED"},
		"one, and no branch":          {branch: "none", present: app},
		"one that cannot be seen":     {branch: "none", blind: refusal("GIT_FAILED")},
		"one that cannot be branched": {branching: refusal("GIT_FAILED"), told: "REPOSITORY_BRANCH_NOT_MADE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, reading, withRepository, func(c *session.Config) { c.Agents["tester"].Repositories[0].Branch = tc.branch })
			f.peers.set(func(m *remote) {
				m.refusal = apierr.Of(codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_REPOSITORY_EXISTS, "something is there")
				m.branching, m.present, m.blind = tc.branching, tc.present, tc.blind
			})
			events := f.turn(t.Context(), t, f.session(t.Context(), t), "one")
			var told []string
			for _, e := range events {
				if strings.Contains(e.GetWarning().GetMessage(), "repos/app") {
					told = append(told, e.GetWarning().GetReason())
				}
			}
			if strings.Join(told, " ") != tc.told {
				t.Errorf("told: %q, want %q: %v", told, tc.told, events)
			}
		})
	}
}
