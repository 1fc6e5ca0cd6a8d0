package store

import (
	"context"
	"errors"
	"time"
)

// Bounds of a collection, such as the agents of a tenant, where a write sets none. Archived ones count,
// too.
const (
	MaxAgents        = 1000
	MaxAgentVersions = 10_000
)

// Errors of agents.
var (
	// ErrArchived says that an archived resource takes no changes.
	ErrArchived = errors.New("it is archived")
	// ErrConflict says that the resource has another newest version than the expected one.
	ErrConflict = errors.New("there is a newer version")
)

// AgentRevision is the configuration of an agent at one time.
type AgentRevision struct {
	Name     string // `agents/{agent}`, `environments/{environment}` or `skills/{skill}`, perhaps below `users/{user}/`
	Revision string
	Spec     []byte // opaque to the store
}

// AgentRow is a version of an agent that was made by the API.
type AgentRow struct {
	AgentRevision
	Version      int32
	User         string // who made the version
	RestoredFrom int32  // the version whose spec a rollback copied, or 0
	VersionTime  time.Time
	CreateTime   time.Time  // of the agent
	ArchiveTime  *time.Time // of the agent; nil: it is not archived
}

// AgentWrite makes a version of an agent.
type AgentWrite struct {
	Tenant string
	AgentRevision
	User         string
	RestoredFrom int32
	// Expected is the newest version so far; 0 makes the agent.
	Expected int32
	// Most bounds the agents of the same collection, and MostVersions the versions of one; 0 means
	// MaxAgents and MaxAgentVersions.
	Most, MostVersions int
	Request            Request
}

// DeleteAgent deletes an agent with its versions.
type DeleteAgent struct {
	Tenant, Name string
	Jobs         []Job // put with the deletion
	Request      Request
}

// ArchiveAgent archives an agent, or brings it back.
type ArchiveAgent struct {
	Tenant, Name string
	Undo         bool
	Request      Request
}

// Agents stores the agents of tenants, and their environments and skills, which are versioned alike.
type Agents interface {
	// PutAgentRevision stores a revision. A revision is immutable, so storing it
	// twice changes nothing.
	PutAgentRevision(ctx context.Context, tenant string, a AgentRevision) error
	// GetAgentRevision reads a revision, or ErrNotFound.
	GetAgentRevision(ctx context.Context, tenant, name, revision string) (AgentRevision, error)

	// WriteAgent makes an agent, or a new version of one, and stores its revision. The
	// answer's value is the version's name, `agents/{agent}/versions/{version}`. ErrExists and ErrTooMany for a new agent;
	// ErrNotFound, ErrConflict, ErrArchived and ErrTooMany for a version;
	// ErrRequestIDReused.
	WriteAgent(ctx context.Context, w AgentWrite) (Answer, error)
	// ArchiveAgent archives an agent or brings it back. ErrNotFound,
	// ErrRequestIDReused.
	ArchiveAgent(ctx context.Context, a ArchiveAgent) (Answer, error)
	// DeleteAgent deletes an agent, its versions and their revisions. ErrNotFound,
	// ErrRequestIDReused.
	DeleteAgent(ctx context.Context, d DeleteAgent) (Answer, error)
	// GetAgent reads a version of an agent; 0 means the newest. ErrNotFound.
	GetAgent(ctx context.Context, tenant, name string, version int32) (AgentRow, error)
	// ListAgents lists the agents, environments or skills (collection) at their newest version
	// behind the one named after, by name.
	ListAgents(ctx context.Context, tenant, collection, after string, archived bool, limit int) ([]AgentRow, error)
	// ListAgentVersions lists the versions of an agent below the number before (0: all),
	// the newest first. An agent that does not exist has none.
	ListAgentVersions(ctx context.Context, tenant, name string, before int32, limit int) ([]AgentRow, error)
}
