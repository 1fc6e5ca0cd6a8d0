package integration

import (
	"errors"
	"io"
	"testing"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/gittest"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
)

// allow has the operator allow the forge's repositories below /org, and pushes to
// those that do not begin with "read".
func allow(f *gittest.Forge) func(*sandbox.Config) {
	return func(c *sandbox.Config) {
		c.Egress.Roots = f.PEM
		c.Egress.Credentials = map[string]egress.Credential{"forge": {Hosts: []string{"127.0.0.1"}, Username: gittest.User, Secret: gittest.Secret}}
		one := repository.Remote{Host: "127.0.0.1", Ports: []int{f.Port}, Credential: "forge", Addresses: []string{"127.0.0.0/8"}}
		read, write := one, one
		read.Paths, write.Paths, write.Push = []string{"/org/read*"}, []string{"/org/[!r]*"}, true
		c.Repositories.Remotes = []repository.Remote{read, write}
	}
}

// clone clones, and returns what was told on the way.
func (c *client) clone(t *testing.T, r *sandboxv1.CloneRepositoryRequest) (*sandboxv1.Repository, []string, error) {
	t.Helper()
	if r.Call == nil {
		r.Call = c.call()
	}
	stream, err := c.repos.CloneRepository(t.Context(), r)
	if err != nil {
		return nil, nil, err
	}
	var phases []string
	var made *sandboxv1.Repository
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return made, phases, nil
		}
		if err != nil {
			return nil, phases, err
		}
		if p := m.GetProgress(); p != nil {
			phases = append(phases, p.GetPhase())
		}
		if m.GetRepository() != nil {
			made = m.GetRepository()
		}
		if m.GetRepeated() {
			phases = append(phases, "repeated")
		}
	}
}
