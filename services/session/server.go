package session

import (
	"context"
	"errors"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Server is a program that is a sandbox node itself, and shares its database with other
// such programs: each has its workspaces on its own disk, and reaches those of the
// others.
type Server struct {
	Name    string // of its sandbox node
	Address string // of its peer listener, for the others
	// Learn is called with the addresses of the others: the nodes of
	// Deps.Sandbox.
	Learn func(name, address string) error
	// Ask asks the server at an address for its name.
	Ask func(ctx context.Context, address string) (name string, err error)
}

// group returns the server as a member of the group that shares a store.
func (s *Server) group(st store.Store) (*placement.Group, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // it is alone
	}
	members, ok := st.(store.Members)
	if !ok {
		return nil, errors.New("servers cannot share this database")
	}
	return &placement.Group{
		Self:  store.Member{Name: s.Name, Address: s.Address, Instance: id.New()},
		Store: members, Learn: s.Learn, Ask: s.Ask,
	}, nil
}
