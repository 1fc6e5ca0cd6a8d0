package workspace

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// oneDown is two nodes of which the node a does not answer.
type oneDown struct{}

func (oneDown) Health(_ context.Context, node string) error {
	if node == "a" {
		return errors.New("down")
	}
	return nil
}

func (o oneDown) Capabilities(ctx context.Context, node string) (*sandboxv1.GetCapabilitiesResponse, error) {
	return &sandboxv1.GetCapabilitiesResponse{Node: node}, o.Health(ctx, node)
}

func (oneDown) Draining(context.Context) ([]string, error) { return nil, nil }

func TestAWorkspaceWithoutFilesDoesNotWaitForASilentNode(t *testing.T) {
	calling := &sessionv1.Message{Role: sessionv1.Role_ROLE_ASSISTANT, Blocks: []*sessionv1.Block{
		{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{CallId: "c", Tool: "Bash"}}},
	}}
	left := store.Left{Node: "z", Why: store.NodeLost}
	for name, c := range map[string]struct {
		place, stored, want store.Place
		last                *sessionv1.Message
		methods             []string
	}{
		"never made":               {store.Place{Node: "a", Generation: 1}, store.Place{}, store.Place{Node: "b", Generation: 2}, nil, nil},
		"never made, again":        {store.Place{Node: "a", Generation: 7}, store.Place{}, store.Place{Node: "b", Generation: 8}, nil, nil},
		"made":                     {store.Place{Node: "a", Generation: 1, Made: true}, store.Place{}, store.Place{Node: "a", Generation: 1, Made: true}, nil, nil},
		"made by a request":        {store.Place{Node: "a", Generation: 1}, store.Place{Node: "a", Generation: 1, Made: true}, store.Place{Node: "a", Generation: 1, Made: true}, nil, nil},
		"the files never arrived":  {store.Place{Node: "a", Generation: 2, Restore: true, Left: left}, store.Place{}, store.Place{Node: "b", Generation: 3, Made: true}, nil, []string{"import"}},
		"a call may have begun":    {store.Place{Node: "a", Generation: 1}, store.Place{}, store.Place{Node: "b", Generation: 2, Made: true}, calling, []string{"import"}},
		"on the node that answers": {store.Place{Node: "b", Generation: 1}, store.Place{}, store.Place{Node: "b", Generation: 1}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := placement.New(placement.Config{
					Names: []string{"a", "b"}, LostAfter: 10 * time.Minute, Sandbox: oneDown{}, Store: oneDown{}, Log: slog.New(slog.DiscardHandler),
				})
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = nodes.Run(ctx) })
				defer running.Wait()
				defer stop()
				synctest.Wait() // the first probes
				f := start(t, spec, Config{Nodes: nodes, Export: true})
				f.SetPlace(c.place)
				if f.Store.Place = c.stored; c.stored.Node == "" {
					f.Store.Place = c.place
					f.Store.Place.Generation = c.want.Generation
				}
				if c.last != nil {
					f.Path = append(f.Path, c.last)
				}
				moved, out, err := f.Place.Ensure(f.Scope)
				if err != nil || !out.GoesOn() || moved != (c.place.Node != c.want.Node) {
					t.Fatalf("moved %v, %+v, %v", moved, out.End, err)
				}
				if p := f.Session.Place(); p != c.want {
					t.Errorf("the place is %+v, want %+v", p, c.want)
				}
				if got := f.sandbox.methods(); !slices.Equal(got, c.methods) {
					t.Errorf("the sandbox was asked for %v, want %v", got, c.methods)
				}
			})
		})
	}
}
