package jobs

import (
	"context"
	"errors"
	"testing"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// storages notes whose storage is to be deleted.
type storages struct {
	grpc.ClientConnInterface
	who []principal.Principal
	err error
}

func (s *storages) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	p, _ := principal.From(ctx)
	s.who = append(s.who, p)
	return s.err
}

func TestAUsersStorageIsDeletedOnEachNodeInTheUsersName(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		name  string
		nodes []string
		err   error
		asked int  // how often sandbox is
		lost  bool // a node is given up
	}{
		{name: "the one node that needs no name", asked: 1},
		{name: "two nodes", nodes: []string{"a", "b"}, asked: 2},
		{name: "a node that is no longer configured", nodes: []string{"a", "old"}, asked: 1, lost: true},
		{name: "a node that is away", nodes: []string{"a"}, err: away, asked: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &storages{err: c.err}
			nodes := placement.New(placement.Config{Names: []string{"a", "b"}})
			deps := Deps{Sandbox: remote.NewSandbox(s), Workspaces: &placement.Workspaces{Nodes: nodes}}
			lost, ids := false, map[string]bool{}
			for _, j := range StorageJobs("acme", "ann", c.nodes) {
				ids[j.ID] = true
				if j.Tenant != "acme" || j.Kind != store.JobStorage || j.After != store.DeleteGrace {
					t.Errorf("the job is %+v", j)
				}
				again, err := deps.deleteStorage(t.Context(), j)
				permanent := &backoff.PermanentError{}
				if errors.As(err, &permanent) {
					lost = true
				} else if again != nil || !errors.Is(err, c.err) {
					t.Errorf("it ended with %v, %v", again, err)
				}
			}
			if lost != c.lost || len(s.who) != c.asked || len(ids) != max(len(c.nodes), 1) {
				t.Errorf("given up: %t; asked for %v; %d jobs", lost, s.who, len(ids))
			}
			for _, p := range s.who {
				if p.Tenant != "acme" || p.User != "ann" {
					t.Errorf("asked as %+v", p)
				}
			}
		})
	}
}
