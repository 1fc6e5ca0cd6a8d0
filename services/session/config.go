package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/attached"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/claudecode"
	"github.com/fairlead/fairlead/services/session/internal/flag"
	"github.com/fairlead/fairlead/services/session/internal/guardrail"
	"github.com/fairlead/fairlead/services/session/internal/limits"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/skill"
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

	DefaultAgent string                      `key:"default-agent" help:"the agent of sessions that name no agent"`
	Agents       map[string]agent.Spec       `key:"agents" help:"agents besides the built-in coder and assistant, or replacements of these"`
	Models       catalog.Config              `key:",inline"`
	Webhooks     webhook.Config              `key:"webhooks"`
	Guardrails   map[string]guardrail.Config `key:"guardrails" help:"guardrail profiles by name; a model names its profile, and default applies to all other models"`
	Budgets      budget.Config               `key:"budgets"`
	Files        blob.Config                 `key:"files"`
	Skills       skill.Config                `key:"skills"`
	CheckpointsConfig

	CompactionConfig

	LimitsConfig
	WorkersConfig
	JobsConfig

	ImportMaxBytes         config.Size   `key:"import-max-bytes" help:"the largest file from which a session is imported; it is kept in the temporary directory during the import"`
	RepositoryBranch       string        `key:"repository-branch" help:"the name of the branch on which a session works in its repositories; {session} is replaced by the session's id"`
	FollowerBuffer         config.Size   `key:"follower-buffer" help:"how many bytes of events may wait in memory for one slow client; beyond that the client is served from the database"`
	SandboxLostAfter       time.Duration `key:"sandbox-lost-after" help:"how long a sandbox node may be silent before it counts as lost and another node restores its workspaces from their last export (with sandbox-nodes, or several servers on one Postgres); above 1m turns fail in the meantime instead of waiting"`
	WorkspaceExport        string        `key:"workspace-export" help:"when a workspace is copied to the object store, with sandbox-nodes: turn (after each turn that may have changed it, in the background) or off (a lost node loses its workspaces)"`
	StreamProgressInterval time.Duration `key:"stream-progress-interval" help:"interval of progress messages in a quiet stream; proxies cut silent streams"`
}

// DatabaseConfig says where sessions are kept.
type DatabaseConfig struct {
	DatabaseURL  config.Secret `key:"database-url" env:"FAIRLEAD_DATABASE_URL" help:"Postgres, as postgres://user:password@host/database, or with several hosts, separated by commas, where the one that accepts writes is used; empty: SQLite in the data directory"`
	DatabaseWait time.Duration `key:"database-wait" env:"FAIRLEAD_DATABASE_WAIT" help:"how long a start waits for a Postgres that cannot be reached; nothing is served meanwhile; 0: it does not wait"`
	Data         string        `key:"data" help:"the directory for SQLite's file session.db"`
}

// CheckpointsConfig configures when files are kept.
type CheckpointsConfig struct {
	Checkpoints     []string `key:"checkpoints" help:"tools that trigger a checkpoint before their call, for agents without a list of their own: names, prefixes such as mcp__files__*, or * for every tool that may change something; an empty list: no checkpoints, and a rolled-back turn keeps its file changes"`
	KeepCheckpoints int      `key:"keep-checkpoints" help:"the most automatic checkpoints of a session, after which the oldest is deleted, and the most checkpoints of other kinds; the sandbox keeps a snapshot for each"`
}

// CompactionConfig says when conversations are compacted.
type CompactionConfig struct {
	CompactAt            int   `key:"compact-at" help:"the share of a model's context, in percent, from which the conversation is compacted; 0: only when the model reports a full context"`
	CompactSummaryTokens int64 `key:"compact-summary-tokens" help:"the most tokens of the summary that replaces the compacted part"`
}

// LimitsConfig bounds turns, and what tenants, users and keys use.
type LimitsConfig struct {
	KeysOutliveToken time.Duration `key:"keys-outlive-token" help:"how much later than the token that makes it an API key may end, such as 2160h; 0: no later, so a token that ends in an hour makes keys for an hour at most"`

	Use limits.Config `key:"limits"`

	MaxSteps            int           `key:"max-steps" help:"the most model calls of a turn, unless the agent or the request sets another limit"`
	MaxWallTime         time.Duration `key:"max-wall-time" help:"the most time of a turn, without its time in QUEUED and WAITING"`
	MaxOutputTokens     int64         `key:"max-output-tokens" help:"the most output tokens of a turn, in all steps together"`
	CeilingSteps        int           `key:"ceiling-steps" help:"the highest max-steps that a request may set"`
	CeilingWallTime     time.Duration `key:"ceiling-wall-time" help:"the highest max-wall-time that a request may set"`
	CeilingOutputTokens int64         `key:"ceiling-output-tokens" help:"the highest max-output-tokens that a request may set"`
}

// WorkersConfig says how a replica works on sessions.
type WorkersConfig struct {
	LeaseTTL             time.Duration `key:"lease-ttl" help:"lifetime of a replica's lease on a session; after it, another replica takes over the sessions of a dead one"`
	PollInterval         time.Duration `key:"poll-interval" help:"how often a replica looks for work whose notification was lost"`
	StopGrace            time.Duration `key:"stop-grace" help:"how long a running step may take to end after the program is told to stop; then it is interrupted and handed over; it also ends with three quarters of grace"`
	MaxSessions          int           `key:"max-sessions" help:"the most sessions that a replica works on at the same time"`
	MaxSessionsPerTenant int           `key:"max-sessions-per-tenant" help:"the most sessions of one tenant that a replica works on at the same time; 0: as many as max-sessions"`
	PeerPatience         time.Duration `key:"peer-patience" help:"how long a turn waits for the tools and sandbox services while they cannot be reached; then a turn that needs them fails, and the calls of a turn that is being stopped count as unknown"`
	AnswerTTL            time.Duration `key:"answer-ttl" help:"how long a turn waits for a person's answer to an approval, and for a client's result of its own tool; then the call ends as EXPIRED and the turn continues; 0: without limit"`
	MaxSubagents         int           `key:"max-subagents" help:"the most subagents that work at the same time for one session, those of subagents included; further ones wait, or are refused to subagents"`
	SubagentDepth        int           `key:"subagent-depth" help:"how deep subagents may be: 1: they give no work to subagents of their own; 2: theirs give none; the sessions of each depth have a max-sessions of their own"`
	Runtimes             Runtimes      `key:"runtimes"`
	Flags                flag.Config   `key:"flags"`
	MaxClaims            int           `key:"max-claims" help:"how often a turn is claimed without committing a new step; the next claim only ends it as FAILED with CRASH_LOOP; a replica runs one turn at a time on its last attempt"`
}

// JobsConfig is about the work beside the turns.
type JobsConfig struct {
	JobConcurrency int           `key:"job-concurrency" help:"the most background jobs that a replica runs at the same time: deletions, folding, indexing, schedules, webhooks"`
	JobTimeout     time.Duration `key:"job-timeout" help:"the most time of one attempt of a job; another replica takes over after one and a half times this time"`
	FoldAfter      time.Duration `key:"fold-after" help:"how long after a turn's end its deltas are merged into whole blocks; long enough for disconnected clients to reconnect and resume in the middle of a block"`
	Retention      time.Duration `key:"retention" help:"delete sessions that have been idle for this long, with all their data, unless a turn is active or queued, a schedule is waiting or paused, or a webhook delivery is pending; 0: keep them"`
}

// Runtimes configures what drives turns besides the session service itself.
type Runtimes struct {
	ClaudeCode claudecode.Config `key:"claude-code"`
	Attached   attached.Config   `key:"attached"`
}

// Defaults returns the default configuration.
func Defaults() Config {
	return Config{
		DatabaseConfig: DatabaseConfig{DatabaseWait: time.Minute},
		DefaultAgent:   agent.Coder, Models: catalog.Defaults(), Guardrails: guardrail.Defaults(),
		Budgets:           budget.Config{Wait: 30 * time.Second},
		CheckpointsConfig: CheckpointsConfig{Checkpoints: []string{"*"}, KeepCheckpoints: 100},
		CompactionConfig:  CompactionConfig{CompactAt: 80, CompactSummaryTokens: 4000},
		LimitsConfig: LimitsConfig{
			MaxSteps: 100, MaxWallTime: 30 * time.Minute, MaxOutputTokens: 200_000,
			CeilingSteps: 1000, CeilingWallTime: 24 * time.Hour, CeilingOutputTokens: 5_000_000, Use: limits.Defaults(),
		},
		WorkersConfig: WorkersConfig{
			LeaseTTL: 8 * time.Second, PollInterval: time.Second, StopGrace: 5 * time.Second, MaxSessions: 1000, MaxClaims: 5,
			MaxSubagents: 10, SubagentDepth: 2, PeerPatience: 15 * time.Minute, AnswerTTL: 7 * 24 * time.Hour, Runtimes: Runtimes{ClaudeCode: claudecode.Defaults(), Attached: attached.Defaults()},
		},
		JobsConfig: JobsConfig{JobConcurrency: 16, JobTimeout: 20 * time.Second, FoldAfter: time.Minute},
		Webhooks:   webhook.Defaults(), Files: blob.Defaults(), Skills: skill.Defaults(), StreamProgressInterval: 5 * time.Second, FollowerBuffer: 4 << 20,
		ImportMaxBytes: 1 << 30, SandboxLostAfter: 30 * time.Second, WorkspaceExport: ExportTurn,
		RepositoryBranch: "fairlead/{session}",
	}
}

// filesFolder returns the folder of users' files if no store is configured; empty: they need one.
func (c Config) filesFolder() string {
	if c.DatabaseURL != "" || c.Data == "" {
		return ""
	}
	return filepath.Join(c.Data, "files")
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.KeysOutliveToken < 0, "keys-outlive-token: %v is negative", c.KeysOutliveToken)
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
	fault(c.MaxSubagents < 1, "max-subagents: %d is less than 1", c.MaxSubagents)
	fault(c.SubagentDepth < 1 || c.SubagentDepth > 10, "subagent-depth: %d is not between 1 and 10", c.SubagentDepth)
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
	fault(c.WorkspaceExport != ExportTurn && c.WorkspaceExport != ExportOff, "workspace-export: %q is not turn or off", c.WorkspaceExport)
	fault(c.StreamProgressInterval < 100*time.Millisecond, "stream-progress-interval: %v is less than 100ms", c.StreamProgressInterval)
	if err := c.Runtimes.ClaudeCode.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("runtimes.claude-code: %w", err))
	}
	if err := c.Runtimes.Attached.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("runtimes.attached: %w", err))
	}
	if err := c.Skills.Validate(); err != nil {
		faults = append(faults, err)
	}
	if err := c.Files.Validate(); err != nil {
		faults = append(faults, err)
	}
	if err := c.Use.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("limits: %w", err))
	}
	if _, err := guardrail.New(c.Guardrails); err != nil {
		faults = append(faults, err)
	}
	if _, err := agent.NewSet(c.Agents, c.DefaultAgent); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
