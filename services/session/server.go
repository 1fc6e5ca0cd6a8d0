package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
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

// InternalKey returns the seed of internal tokens that the servers on one database share. The
// first one makes it.
func InternalKey(ctx context.Context, c Config, log *slog.Logger) (_ []byte, err error) {
	st, err := openStore(ctx, c, log)
	if err != nil {
		return nil, fmt.Errorf("read the internal key: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	members, ok := st.(store.Members)
	if !ok {
		return nil, errors.New("servers cannot share this database")
	}
	fresh := make([]byte, internaltoken.SeedSize)
	_, _ = rand.Read(fresh) // it never fails
	return members.InternalKey(ctx, fresh)
}

// ReadInternalKey returns the seed that servers on a database share, for a program that calls
// them.
func ReadInternalKey(ctx context.Context, url config.Secret, log *slog.Logger) ([]byte, error) {
	return postgres.ReadInternalKey(ctx, url.Reveal(), log)
}
