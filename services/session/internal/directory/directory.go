// Package directory knows what an agent, an environment, a model and a skill is for a tenant. It finds them by the names that
// requests and agents use: those of the configuration, and those that the API made, which are rows of the store. It knows no
// RPC: handlers, turns, the model proxy and jobs ask it.
package directory

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/audit"
	"github.com/fairlead/fairlead/services/session/internal/guardrail"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Store is the part of a store that has agents, environments, skills, tenants' models and MCP servers.
type Store interface {
	store.Agents
	mcp.Store
	PlaceOf(ctx context.Context, k store.Key) (store.Place, int64, error)
	GetSession(ctx context.Context, k store.Key) (*sessionv1.Session, error)
	GetUser(ctx context.Context, o store.Owner) (*sessionv1.User, error)
}

// Config is what the server has been configured with.
type Config struct {
	Store      Store
	Agents     *agent.Set
	Models     *catalog.Catalog
	Guardrails guardrail.Profiles
	Skills     *skill.Library
	// Missing returns what the tools service lacks of what an agent of the configuration needs, as far as it is known.
	Missing func(agent string) []string
	// Tools tells whether an agent that the API makes fits the tools service.
	Tools *remote.Tools
	// Recorder audits agents that agents make.
	Recorder *audit.Recorder
	Log      *slog.Logger
}

// Directory finds by name. It is safe for concurrent use.
type Directory struct {
	Config
	kept sync.Map // tenant, agent and revision that the store has
}

// New returns a directory.
func New(c Config) *Directory { return &Directory{Config: c} }

// SplitVersion splits `agents/{agent}/versions/{version}`, and the like for the other kinds.
func SplitVersion(name string) (of string, version int32, _ error) {
	of, number, _ := strings.Cut(name, "/versions/")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return "", 0, fmt.Errorf("the version of an agent %q: %w", name, err)
	}
	return of, int32(n), nil
}
