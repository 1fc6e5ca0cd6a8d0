package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/guard"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/webhook"
)

// When workspaces are exported.
const (
	ExportTurn = "turn"
	ExportOff  = "off"
)

// Config configures the session service. Defaults returns the default one.
type Config struct {
	DatabaseConfig

	DefaultAgent         string                  `key:"default-agent" help:"the agent of sessions that name none"`
	Agents               map[string]agent.Spec   `key:"agents" help:"agents besides the built-in coder and assistant, or in their place"`
	Models               catalog.Config          `key:",inline"`
	Webhooks             webhook.Config          `key:"webhooks"`
	Guardrails           map[string]guard.Config `key:"guardrails" help:"profiles of guardrails, by name; a model names its own, and default is that of all others"`
	Budgets              budget.Config           `key:"budgets"`
	Checkpoints          []string                `key:"checkpoints" help:"the tools before whose calls a step makes a checkpoint, of agents that do not say: names, beginnings such as mcp__files__*, or * for every tool that may change something; an empty list: none, and files stay when a turn is rolled back"`
	KeepCheckpoints      int                     `key:"keep-checkpoints" help:"the most automatic checkpoints of a session, of which the oldest make room, and the most others; the sandbox keeps a snapshot for each of both"`
	CompactAt            int                     `key:"compact-at" help:"the part of a model's context, in percent, from which on the conversation is shortened for it; 0: only when the model says that it is full"`
	CompactSummaryTokens int64                   `key:"compact-summary-tokens" help:"the most tokens of the summary that takes the place of what was shortened"`

	LimitsConfig
	WorkersConfig
	JobsConfig

	ImportMaxBytes         config.Size   `key:"import-max-bytes" help:"how large a file may be from which a session is imported; it lies in the temporary directory meanwhile"`
	RepositoryBranch       string        `key:"repository-branch" help:"the name of the branch on which a session works in its repositories; {session} stands for the session's id"`
	FollowerBuffer         config.Size   `key:"follower-buffer" help:"how many bytes of events may wait in memory for one client that reads slowly; beyond that it is served from the database"`
	SandboxLostAfter       time.Duration `key:"sandbox-lost-after" help:"how long a sandbox node may not answer before it counts as lost and its workspaces are made again on another one, from their last export (with sandbox-nodes, or several servers on one Postgres); above 1m turns fail in the meantime instead of waiting"`
	WorkspaceExport        string        `key:"workspace-export" help:"when a workspace is copied to the object store, with sandbox-nodes: turn, after each turn that may have changed it, beside what comes next; or off: a lost node takes its workspaces with it"`
	StreamProgressInterval time.Duration `key:"stream-progress-interval" help:"how often a quiet stream says how far it is; proxies cut streams that stay silent"`
}

// DatabaseConfig says where sessions are kept.
type DatabaseConfig struct {
	DatabaseURL  config.Secret `key:"database-url" env:"FAIRLEAD_DATABASE_URL" help:"Postgres, as postgres://user:password@host/database, or with several hosts, separated by commas, of which the one is taken that takes writes; empty: SQLite in the data directory"`
	DatabaseWait time.Duration `key:"database-wait" env:"FAIRLEAD_DATABASE_WAIT" help:"how long a start may wait for a Postgres that cannot be reached; until it is there nothing is served; 0: not at all"`
	Data         string        `key:"data" help:"the directory for SQLite's file session.db"`
}

// LimitsConfig bounds turns.
type LimitsConfig struct {
	MaxSteps            int           `key:"max-steps" help:"the most model calls of a turn, unless the agent or the request says otherwise"`
	MaxWallTime         time.Duration `key:"max-wall-time" help:"the most time of a turn, QUEUED and WAITING not counted"`
	MaxOutputTokens     int64         `key:"max-output-tokens" help:"the most output tokens of a turn, all steps added up"`
	CeilingSteps        int           `key:"ceiling-steps" help:"what a request may raise max-steps to"`
	CeilingWallTime     time.Duration `key:"ceiling-wall-time" help:"what a request may raise max-wall-time to"`
	CeilingOutputTokens int64         `key:"ceiling-output-tokens" help:"what a request may raise max-output-tokens to"`
}

// WorkersConfig says how a replica works on sessions.
type WorkersConfig struct {
	LeaseTTL             time.Duration `key:"lease-ttl" help:"how long a replica that fell silent keeps its sessions; a takeover takes at most this and a little more"`
	PollInterval         time.Duration `key:"poll-interval" help:"how often a replica looks for work that no notification told of"`
	StopGrace            time.Duration `key:"stop-grace" help:"how long a running step may take to end when the program is told to stop, before it is broken off and handed over; it also ends with three quarters of grace"`
	MaxSessions          int           `key:"max-sessions" help:"the most sessions that a replica works on at the same time"`
	MaxSessionsPerTenant int           `key:"max-sessions-per-tenant" help:"the most of them of one tenant; 0: as many as max-sessions"`
	PeerPatience         time.Duration `key:"peer-patience" help:"how long a turn waits for the tools and sandbox services while they cannot be reached; after that a turn that needs them fails, and calls of one that is being stopped count as unknown"`
	AnswerTTL            time.Duration `key:"answer-ttl" help:"how long a turn waits for a person's answer to an approval, and for a client's result of its own tool; then the call ends as EXPIRED and the turn goes on; 0: for ever"`
	MaxClaims            int           `key:"max-claims" help:"how often a turn is tried, each time by a new claim, without a new committed step; the next claim only ends it, FAILED with CRASH_LOOP; a replica gives one turn at a time its last try"`
}

// JobsConfig is about the work beside the turns.
type JobsConfig struct {
	JobConcurrency int           `key:"job-concurrency" help:"the most jobs beside the turns that a replica does at the same time: deletions, folding, indexing, schedules, webhooks"`
	JobTimeout     time.Duration `key:"job-timeout" help:"the most time of one try of a job; another replica takes over one and a half times later"`
	FoldAfter      time.Duration `key:"fold-after" help:"how long after a turn's end its deltas are merged into whole blocks; long enough for clients that were cut off to come back and go on in the middle of one"`
	Retention      time.Duration `key:"retention" help:"delete sessions in which nothing was done for this long, with all that belongs to them, unless a turn is active or queued or a schedule waits or is paused or a webhook is still to be told; 0 keeps them for ever"`
}

// Defaults returns the default configuration.
func Defaults() Config {
	return Config{
		DatabaseConfig: DatabaseConfig{DatabaseWait: time.Minute},
		DefaultAgent:   agent.Coder, Models: catalog.Defaults(), Guardrails: guard.Defaults(), Budgets: budget.Config{Wait: 30 * time.Second},
		Checkpoints: []string{"*"}, KeepCheckpoints: 100,
		CompactAt: 80, CompactSummaryTokens: 4000,
		LimitsConfig: LimitsConfig{
			MaxSteps: 100, MaxWallTime: 30 * time.Minute, MaxOutputTokens: 200_000,
			CeilingSteps: 1000, CeilingWallTime: 24 * time.Hour, CeilingOutputTokens: 5_000_000,
		},
		WorkersConfig: WorkersConfig{
			LeaseTTL: 8 * time.Second, PollInterval: time.Second, StopGrace: 5 * time.Second, MaxSessions: 1000, MaxClaims: 5,
			PeerPatience: 15 * time.Minute, AnswerTTL: 7 * 24 * time.Hour,
		},
		JobsConfig: JobsConfig{JobConcurrency: 16, JobTimeout: 20 * time.Second, FoldAfter: time.Minute},
		Webhooks:   webhook.Defaults(), StreamProgressInterval: 5 * time.Second, FollowerBuffer: 4 << 20,
		ImportMaxBytes: 1 << 30, SandboxLostAfter: 30 * time.Second, WorkspaceExport: ExportTurn,
		RepositoryBranch: "fairlead/{session}",
	}
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.DatabaseWait < 0, "database-wait: %v is negative", c.DatabaseWait)
	if raw := c.DatabaseURL.Reveal(); raw != "" {
		err := pg.CheckURL(raw)
		fault(err != nil, "database-url: %v", err)
	} else {
		fault(c.Data == "", "data: is missing; it is where SQLite keeps its file (or set database-url)")
	}
	fault(c.KeepCheckpoints < 1, "keep-checkpoints: %d is less than 1", c.KeepCheckpoints)
	if err := agent.CheckCheckpoints(c.Checkpoints); err != nil {
		faults = append(faults, err)
	}
	fault(c.CompactAt < 0 || c.CompactAt > 95, "compact-at: %d is not between 0 and 95", c.CompactAt)
	fault(c.CompactSummaryTokens < 50 || c.CompactSummaryTokens > 100_000, "compact-summary-tokens: %d is not between 50 and 100000", c.CompactSummaryTokens)
	fault(c.MaxSteps < 1 || c.MaxSteps > c.CeilingSteps, "max-steps: %d is not between 1 and ceiling-steps (%d)", c.MaxSteps, c.CeilingSteps)
	fault(c.CeilingSteps > 10000, "ceiling-steps: %d is more than 10000", c.CeilingSteps)
	fault(c.MaxWallTime <= 0 || c.MaxWallTime > c.CeilingWallTime, "max-wall-time: %v is not between 0 and ceiling-wall-time (%v)", c.MaxWallTime, c.CeilingWallTime)
	fault(c.MaxOutputTokens < 1 || c.MaxOutputTokens > c.CeilingOutputTokens, "max-output-tokens: %d is not between 1 and ceiling-output-tokens (%d)", c.MaxOutputTokens, c.CeilingOutputTokens)
	fault(c.LeaseTTL < time.Second, "lease-ttl: %v is less than 1s", c.LeaseTTL)
	fault(c.PollInterval < 10*time.Millisecond, "poll-interval: %v is less than 10ms", c.PollInterval)
	fault(c.Budgets.Wait < 0, "budgets.wait: %v is negative", c.Budgets.Wait)
	fault(c.StopGrace < 0, "stop-grace: %v is negative", c.StopGrace)
	fault(c.MaxSessions < 1, "max-sessions: %d is less than 1", c.MaxSessions)
	fault(c.MaxSessionsPerTenant < 0, "max-sessions-per-tenant: %d is negative", c.MaxSessionsPerTenant)
	fault(c.PeerPatience < time.Second, "peer-patience: %v is less than 1s", c.PeerPatience)
	fault(c.AnswerTTL < 0, "answer-ttl: %v is negative", c.AnswerTTL)
	fault(c.MaxClaims < 1, "max-claims: %d is less than 1", c.MaxClaims)
	fault(c.JobConcurrency < 1, "job-concurrency: %d is less than 1", c.JobConcurrency)
	fault(c.FoldAfter < 0, "fold-after: %v is negative", c.FoldAfter)
	fault(c.Retention < 0, "retention: %v is negative", c.Retention)
	fault(c.ImportMaxBytes < 1<<10, "import-max-bytes: %v is less than 1KiB", c.ImportMaxBytes)
	fault(!strings.Contains(c.RepositoryBranch, "{session}") || len(c.RepositoryBranch) > 150, "repository-branch: %q is longer than 150 bytes, or has no {session}: sessions would share a branch", c.RepositoryBranch)
	fault(c.JobTimeout < time.Second, "job-timeout: %v is less than 1s", c.JobTimeout)
	fault(c.FollowerBuffer < 16<<10, "follower-buffer: %v is less than 16KiB", c.FollowerBuffer)
	fault(c.SandboxLostAfter < time.Second, "sandbox-lost-after: %v is less than 1s", c.SandboxLostAfter)
	fault(c.WorkspaceExport != ExportTurn && c.WorkspaceExport != ExportOff, "workspace-export: %q is none of turn, off", c.WorkspaceExport)
	fault(c.StreamProgressInterval < 100*time.Millisecond, "stream-progress-interval: %v is less than 100ms", c.StreamProgressInterval)
	if _, err := guard.New(c.Guardrails); err != nil {
		faults = append(faults, err)
	}
	if _, err := agent.NewSet(c.Agents, c.DefaultAgent); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
