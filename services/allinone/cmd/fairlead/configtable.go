package main

import (
	"io"
	"strings"

	"github.com/fairlead/fairlead/services/allinone/internal/host"
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

// configTableCommand prints every key of every program but sandbox-kubernetes, which prints its own.
type configTableCommand struct{}

// configurationHead is what docs/configuration.md begins with.
const configurationHead = `# Configuration

<!-- Written by "make docs" from the programs; change the help texts in the code. -->

A key has a default. The file (` + "`--config FILE` or `FAIRLEAD_CONFIG`" + `, YAML with the key's path) overrides it, the environment overrides the file,
and flags override the environment. An unknown key, flag or variable with the prefix ` + "`FAIRLEAD_`" + ` is an error at the start, and so is a malformed value. The
error lists all faults at once. Durations are written as ` + "`90s` or `1h30m`" + `. Only the file can set keys without a flag. ` + "`{data}`" + ` stands for the value of ` + "`data`" + `.

Traces have no keys: the standard variables ` + "`OTEL_*`" + ` configure them. ` + "`FAIRLEAD_SERVER`" + ` names the server of all client commands, such as ` + "`fairlead run`" + `.

[Entries of mappings and lists](#entries-of-mappings-and-lists) has the keys of agents, models, providers, profiles and rules.

`

// entriesHead is what the section of entries begins with.
const entriesHead = "## Entries of mappings and lists\n\nThe services alone have the same keys, without the service's name in front. `NAME` is the entry's name.\n\n"

// Run prints the tables, as Markdown.
func (configTableCommand) Run(s stdio) error {
	if _, err := io.WriteString(s.out, configurationHead); err != nil {
		return err
	}
	all := host.Defaults(dataHome)
	rows := config.Table(&all, loadOptions(nil, nil))
	if err := config.WriteTable(s.out, "All in one: `fairlead serve`", rows); err != nil {
		return err
	}
	if _, err := io.WriteString(s.out, entriesHead); err != nil {
		return err
	}
	if err := config.WriteEntries(s.out, rows); err != nil {
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
		if err := config.WriteTable(s.out, "The service alone: `"+p.name+"`", rows); err != nil {
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
