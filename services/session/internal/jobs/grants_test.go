package jobs

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
)

// grants are the grants of users by tenant and name.
type grants struct {
	grpc.ClientConnInterface
	left map[string]bool
	err  error
}

func (g *grants) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	p, _ := principal.From(ctx)
	if g.err == nil {
		delete(g.left, p.Tenant+"/"+p.User)
	}
	return g.err
}

func TestGrantsOfADeletedUserAreDeletedOnceToolsAnswers(t *testing.T) {
	g := &grants{left: map[string]bool{"acme/ann": true, "acme/bob": true}, err: errors.New("away")}
	deps, j := Deps{Tools: remote.NewTools(g)}, GrantsJob("acme", "ann")
	if _, err := deps.deleteGrants(t.Context(), j); !errors.Is(err, g.err) || len(g.left) != 2 {
		t.Errorf("got %v, %v", err, g.left)
	}
	g.err = nil
	if again, err := deps.deleteGrants(t.Context(), j); again != nil || err != nil || g.left["acme/ann"] || !g.left["acme/bob"] {
		t.Errorf("got %v, %v, %v", again, err, g.left)
	}
}
