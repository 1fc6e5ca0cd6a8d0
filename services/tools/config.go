package tools

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
)

// Profile is the configuration of a permission profile.
type Profile = permission.Rules

// Config configures the tools service. Defaults returns the default one.
type Config struct {
	DatabaseURL  config.Secret `key:"database-url" env:"FAIRLEAD_DATABASE_URL" help:"Postgres, as postgres://user:password@host/database, or with several hosts, separated by commas, where the one that accepts writes is used; empty: SQLite in the data directory"`
	DatabaseWait time.Duration `key:"database-wait" env:"FAIRLEAD_DATABASE_WAIT" help:"how long a start waits for a Postgres that cannot be reached; nothing is served meanwhile; 0: it does not wait"`
	Data         string        `key:"data" help:"the directory for SQLite's file tools.db"`

	Advertise string        `key:"advertise" help:"address at which the other replicas on the same Postgres reach this one's peer listener; empty: the address of the peer listener"`
	LeaseTTL  time.Duration `key:"lease-ttl" help:"lifetime of a replica's lease on a call; after it, another replica takes over the calls of a dead one"`

	OperationTTL  time.Duration `key:"operation-ttl" help:"how long an operation, such as a command in the background, may run"`
	OperationKeep time.Duration `key:"operation-keep" help:"how long an operation is kept after its end"`

	Profiles    map[string]Profile `key:"profiles" help:"permission profiles besides the built-in full, read-only and ask-writes; rules on paths hold where symbolic links lead, but not for hard links and not for what Bash opens"`
	AllowBypass bool               `key:"allow-bypass" help:"whether the permission mode bypass, which allows what a profile asks about, may be used"`

	MaxCalls        int                   `key:"max-calls" help:"the most calls that run at the same time; further calls wait"`
	MaxSessionCalls int                   `key:"max-session-calls" help:"the most calls of one session that run at the same time; further calls wait"`
	MaxCallTime     time.Duration         `key:"max-call-time" help:"the most time of one call, whatever its tool allows"`
	MCPServers      map[string]mcp.Server `key:"mcp-servers" help:"MCP servers for every agent whose tools name them, as mcp__NAME__* or as one of their tools"`
	MCPConnections  int                   `key:"mcp-connections" help:"the most connections to MCP servers; an unused one makes room for another"`
	MCPStart        time.Duration         `key:"mcp-start" help:"how long an MCP server may take until its tools are known; after that it counts as failed, and is tried again"`
	MCPIdle         time.Duration         `key:"mcp-idle" help:"how long an unused connection to an MCP server is kept"`
	MCPAllowPrivate []string              `key:"mcp-allow-private" help:"addresses and CIDRs, such as 10.20.0.0/16, at which users' MCP servers may be besides public addresses; servers in a sandbox do not need it"`

	MCPLoginKey      config.Secret `key:"mcp-login-key" env:"FAIRLEAD_MCP_LOGIN_KEY" help:"a secret of at least 32 characters that encrypts users' logins to MCP servers in the database; the same for all replicas; empty: users cannot log in"`
	MCPLoginCallback string        `key:"mcp-login-callback" help:"the public URL of the gateway's /v1/mcp/callback, to which browsers come back from a login to an MCP server, such as https://fairlead.example.com/v1/mcp/callback; empty: users cannot log in"`

	MaxCallOutput config.Size `key:"max-call-output" help:"how much output of a running call is kept for its followers"`
}

// Defaults returns the default configuration.
func Defaults() Config {
	return Config{DatabaseWait: time.Minute, LeaseTTL: 6 * time.Second, OperationTTL: 24 * time.Hour, OperationKeep: 24 * time.Hour, MaxCalls: 256, MaxSessionCalls: 16, MaxCallTime: 15 * time.Minute, MaxCallOutput: 1 << 20, MCPConnections: 512, MCPStart: 30 * time.Second, MCPIdle: 5 * time.Minute}
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
	if c.Advertise != "" {
		_, port, err := net.SplitHostPort(c.Advertise)
		fault(err != nil || port == "0", "advertise: %q is not an address such as 10.0.0.1:9191", c.Advertise)
	}
	fault(c.LeaseTTL < 100*time.Millisecond, "lease-ttl: %v is less than 100ms", c.LeaseTTL)
	fault(c.OperationTTL < time.Second, "operation-ttl: %v is less than 1s", c.OperationTTL)
	fault(c.OperationKeep < time.Second, "operation-keep: %v is less than 1s", c.OperationKeep)
	fault(c.MaxCalls < 1 || c.MaxCalls > 100_000, "max-calls: %d is not between 1 and 100000", c.MaxCalls)
	fault(c.MaxSessionCalls < 1 || c.MaxSessionCalls > c.MaxCalls, "max-session-calls: %d is not between 1 and max-calls (%d)", c.MaxSessionCalls, c.MaxCalls)
	fault(c.MaxCallTime < time.Second, "max-call-time: %v is less than 1s", c.MaxCallTime)
	fault(c.MaxCallOutput < 0 || c.MaxCallOutput > 64<<20, "max-call-output: %d is not between 0 and 64 MiB", c.MaxCallOutput)
	if err := mcp.Check(c.MCPServers); err != nil {
		faults = append(faults, err)
	}
	fault(c.MCPConnections < 1 || c.MCPConnections > 100_000, "mcp-connections: %d is not between 1 and 100000", c.MCPConnections)
	fault(c.MCPStart < time.Second, "mcp-start: %v is less than 1s", c.MCPStart)
	fault(c.MCPIdle < time.Second, "mcp-idle: %v is less than 1s", c.MCPIdle)
	key := len(c.MCPLoginKey.Reveal())
	fault(key > 0 && key < 32, "mcp-login-key: it has less than 32 characters")
	if c.MCPLoginCallback != "" {
		u, err := url.Parse(c.MCPLoginCallback)
		fault(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path == "" || u.RawQuery != "" || u.Fragment != "",
			"mcp-login-callback: %q is not a URL such as https://fairlead.example.com/v1/mcp/callback", c.MCPLoginCallback)
	}
	for _, text := range c.MCPAllowPrivate {
		_, err := prefix(text)
		fault(err != nil, "mcp-allow-private: %q is neither an address nor a CIDR such as 10.20.0.0/16", text)
	}
	if _, err := permission.NewSet(c.Profiles); err != nil {
		faults = append(faults, fmt.Errorf("profiles: %w", err))
	}
	return errors.Join(faults...)
}

// private returns the addresses of MCPAllowPrivate, which Validate has checked.
func (c Config) private() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range c.MCPAllowPrivate {
		if p, err := prefix(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

func prefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}
