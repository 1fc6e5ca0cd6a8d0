package deletion

import (
	"context"
	"errors"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// grants are the grants of users by tenant and name.
type grants struct {
	left map[string]bool
	err  error
}

func (g *grants) DeleteUserGrants(ctx context.Context) error {
	p, _ := principal.From(ctx)
	if g.err == nil {
		delete(g.left, p.Tenant+"/"+p.User)
	}
	return g.err
}

func TestGrantsOfADeletedUserAreDeletedOnceToolsAnswers(t *testing.T) {
	g := &grants{left: map[string]bool{"acme/ann": true, "acme/bob": true}, err: errors.New("away")}
	j := GrantsJob("acme", "ann")
	if _, err := Grants(g)(t.Context(), j); !errors.Is(err, g.err) || len(g.left) != 2 {
		t.Errorf("got %v, %v", err, g.left)
	}
	g.err = nil
	if again, err := Grants(g)(t.Context(), j); again != nil || err != nil || g.left["acme/ann"] || !g.left["acme/bob"] {
		t.Errorf("got %v, %v, %v", again, err, g.left)
	}
}
