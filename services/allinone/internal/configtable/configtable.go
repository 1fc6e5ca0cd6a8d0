// Package configtable writes docs/configuration.md: the keys of every program but sandbox-kubernetes, which prints its own.
package configtable

import (
	"io"
	"strings"

	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/tools"
)

// configurationHead is what docs/configuration.md begins with.
const configurationHead = `# Configuration

<!-- Written by "make docs" from the programs; change the help texts in the code. -->

A key has a default. The file (` + "`--config FILE` or `FAIRLEAD_CONFIG`" + `, YAML with the key's path) overrides it, the environment overrides the file,
and flags override the environment. An unknown key, flag or variable with the prefix ` + "`FAIRLEAD_`" + ` is an error at the start, and so is a malformed value. The
error lists all faults at once. Durations are written as ` + "`90s` or `1h30m`" + `. Only the file can set keys without a flag. ` + "`{data}`" + ` stands for the value of ` + "`data`" + `.

Traces have no keys: the standard variables ` + "`OTEL_*`" + ` configure them. ` + "`FAIRLEAD_SERVER`" + ` names the server of all client commands, such as ` + "`fairlead run`" + `; ` + "`FAIRLEAD_API_KEY`" + ` is their key; ` + "`FAIRLEAD_CA`" + `, ` + "`FAIRLEAD_CERT`" + ` and ` + "`FAIRLEAD_CERT_KEY`" + ` are its files of TLS.

## Where to look

| to do this | set | read |
| --- | --- | --- |
| choose a model, add a provider | [providers](#sessionprovidersname), [models](#sessionmodelsname), ` + "`session.model`" + ` | [models](models.md) |
| define an agent | [agents](#sessionagentsname), ` + "`session.default-agent`" + ` | [agents](agents.md) |
| decide what agents may do | [profiles](#toolsprofilesname) | [permissions](permissions.md) |
| give agents an MCP server | [MCP servers](#toolsmcp-serversname) | [tools](tools.md) |
| give agents skills | [skills](#sessionskills) | [skills](skills.md) |
| bound tokens, money and time | [budgets](#sessionbudgets) | [budgets](budgets.md) |
| bound requests, streams, turns and sessions | [limits](#sessionlimits), [gateway](#gateway) | [limits](limits.md) |
| stop an agent that gets nowhere | [guardrails](#sessionguardrailsname) | [agents](agents.md#when-is-an-agent-stopped) |
| bound the memory, time and disk of commands | [limits of the sandbox](#sandboxlimits), ` + "`sandbox.disk`" + ` | [limits of the sandbox](sandbox-limits.md) |
| open the network to commands | [the ceiling](#sandboxegressceiling), [credentials](#sandboxegresscredentialsname) | [network](sandbox-network.md) |
| show a folder of the machine to agents | [mounts](#sandboxmounts) | [files in the sandbox](sandbox-files.md) |
| give agents a repository | [remotes](#sandboxrepositoriesremotes) | [sandbox](sandbox.md) |
| keep users' files | [files](#sessionfiles) | [files](files.md) |
| let people in | [auth](#auth), [issuers](#authissuers) | [users](users.md), [roles](roles.md) |
| let other machines in | [tls](#tls), ` + "`allow-non-loopback`" + `, ` + "`allowed-hosts`" + ` | [security](security.md) |
| run several servers, or the services apart | ` + "`session.database-url`" + `, ` + "`tools.database-url`" + `, [the object store](#sandbox) | [deploy](deploy.md), [nodes](sandbox-nodes.md) |
| run Claude Code, or a runtime of your own | [runtimes](#sessionruntimes) | [runtimes](runtimes.md) |
| tell other programs of what happens | [webhooks](#sessionwebhooks) | [schedules and webhooks](scheduling.md) |
| delete old sessions | ` + "`session.retention`" + ` | [sessions](sessions.md) |
| read logs and metrics | ` + "`log.level`, `log.format`, `ops`" + ` | [deploy](deploy.md) |

[Entries of mappings and lists](#entries-of-mappings-and-lists) has the keys of agents, models, providers, profiles and rules.

`

// entriesHead is what the section of entries begins with.
const entriesHead = "## Entries of mappings and lists\n\nThe services alone have the same keys, without the service's name in front. `NAME` is the entry's name.\n\n"

// Write writes the tables, as Markdown. The rows are those of all in one.
func Write(w io.Writer, rows []config.Row) error {
	if _, err := io.WriteString(w, configurationHead); err != nil {
		return err
	}
	if err := config.WriteTable(w, "All in one: `fairlead serve`", 2, rows); err != nil {
		return err
	}
	if _, err := io.WriteString(w, entriesHead); err != nil {
		return err
	}
	if err := config.WriteEntries(w, rows); err != nil {
		return err
	}
	sess := sessionProgram()
	tool := toolsProgram()
	box := sandboxProgram()
	gate := gatewayProgram()
	for _, p := range []struct {
		name string
		dst  any
	}{{"session", &sess}, {"tools", &tool}, {"sandbox", &box}, {"gateway", &gate}} {
		rows := config.Table(p.dst, config.Options{Name: p.name, Prefix: "FAIRLEAD_" + strings.ToUpper(p.name) + "_"})
		if err := config.WriteTable(w, "The service alone: `"+p.name+"`", 1, rows); err != nil {
			return err
		}
	}
	return nil
}

// The configurations below are those of the services' own programs, with the
// defaults that their main packages set.

type sessionConfig struct {
	Session session.Config   `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
	Auth    auth.Config      `key:"auth"`
	Nodes   node.Config      `key:",inline"`
	Tools   string           `key:"tools" help:"address of the tools service's peer listener, or of its replicas', separated by commas"`
}

func sessionProgram() sessionConfig {
	c := sessionConfig{Session: session.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig(), Nodes: node.DefaultConfig(), Tools: "127.0.0.1:9191"}
	c.Session.Data = "data"
	c.Server.Public, c.Server.Peer, c.Server.Ops = "127.0.0.1:9090", "127.0.0.1:9190", "127.0.0.1:9290"
	return c
}

type toolsConfig struct {
	Tools  tools.Config     `key:",inline"`
	Server rpc.Config       `key:",inline"`
	Log    telemetry.Config `key:"log"`
	Auth   auth.Config      `key:"auth"`
	Nodes  node.Config      `key:",inline"`

	Session string `key:"session" help:"address of the session service's peer listener, or of its replicas', separated by commas; it knows the API keys of callers of the public listener"`
}

func toolsProgram() toolsConfig {
	c := toolsConfig{Tools: tools.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig(), Nodes: node.DefaultConfig(), Session: "127.0.0.1:9190"}
	c.Tools.Data = "data"
	c.Server.Public, c.Server.Peer, c.Server.Ops = "127.0.0.1:9091", "127.0.0.1:9191", "127.0.0.1:9291"
	return c
}

type sandboxConfig struct {
	Sandbox sandbox.Config   `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
	Auth    auth.Config      `key:"auth"`
}

func sandboxProgram() sandboxConfig {
	c := sandboxConfig{Sandbox: sandbox.Defaults(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig()}
	c.Server.Peer, c.Server.Ops = "127.0.0.1:9192", "127.0.0.1:9292"
	return c
}

type gatewayConfig struct {
	Gateway gateway.Config   `key:",inline"`
	Server  rpc.Config       `key:",inline"`
	Log     telemetry.Config `key:"log"`
	Auth    auth.Config      `key:"auth"`
	Session string           `key:"session" help:"address of the session service's peer listener, or of its replicas', separated by commas"`
	Tools   string           `key:"tools" help:"address of the tools service's peer listener, or of its replicas', separated by commas"`
}

func gatewayProgram() gatewayConfig {
	c := gatewayConfig{Gateway: gateway.DefaultConfig(), Server: rpc.DefaultConfig(), Log: telemetry.DefaultConfig(), Auth: auth.DefaultConfig(), Session: "127.0.0.1:9190", Tools: "127.0.0.1:9191"}
	c.Server.HTTP, c.Server.Public = "127.0.0.1:8080", "127.0.0.1:9092"
	return c
}
