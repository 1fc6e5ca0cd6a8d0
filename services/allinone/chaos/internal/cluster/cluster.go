// Package cluster runs Fairlead as it runs in production, on one machine: two session replicas, two tools replicas, a
// sandbox and a gateway as processes of their own, on a Postgres server with its normal sync settings. Between them are
// proxies whose connections can be cut.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgserver"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// Options configure the cluster.
type Options struct {
	Dir      string // of binaries, data and logs
	Scenario string // the scripted model's, as YAML
	Model    string // its name
	Ask      string // the permission rule that makes a person decide
	Config   string // more of the session service's configuration, as YAML
	Agent    string // more of the agent, as YAML
	Race     bool   // build with the race detector
	LeaseTTL time.Duration
}

// maxClaims is how often a turn may be claimed without progress. Programs die here a thousand times as often
// as in production, so a turn may lose its holder several times before it has made a step, without being at
// fault.
const maxClaims = 40

// Agent is that of all sessions.
const Agent = "chaos"

// Cluster is a running Fairlead.
type Cluster struct {
	Sessions []*Process
	Tools    []*Process
	Sandbox  *Process
	Gateway  *Process
	Postgres *pgserver.Server

	// Replicas are the public gRPC addresses of session, HTTP and GRPC are the gateway's.
	Replicas   []string
	HTTP, GRPC string
	// ToolsPublic are the public gRPC addresses of tools.
	ToolsPublic []string
	// Links are the proxies between the programs, by target.
	Links map[string]*Proxy

	// Keys are those of the services, for clients of their peer listeners.
	Keys *internaltoken.Keys

	options     Options
	internalKey string
	taken       map[string]bool
}

// Start builds the programs and starts everything. The caller closes it.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	c := &Cluster{options: o, Links: map[string]*Proxy{}, taken: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	seed := make([]byte, internaltoken.SeedSize)
	_, _ = rand.Read(seed) // it never fails
	c.internalKey = base64.StdEncoding.EncodeToString(seed)
	if c.Keys, err = internaltoken.New(seed); err != nil {
		return nil, err
	}
	if err := c.build(ctx); err != nil {
		return nil, err
	}
	if c.Postgres, err = pgserver.StartDurable(ctx, ""); err != nil {
		return nil, err
	}
	if err := c.link(ctx, record.Postgres, "unix", c.Postgres.Socket()); err != nil {
		return nil, err
	}
	if err := c.configure(ctx); err != nil {
		return nil, err
	}
	for _, p := range c.Processes() {
		if err := p.Start(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Processes returns all programs, dependencies first.
func (c *Cluster) Processes() []*Process {
	all := append([]*Process{c.Sandbox}, c.Tools...)
	return append(append(all, c.Sessions...), c.Gateway)
}

func (c *Cluster) build(ctx context.Context) error {
	const services = "github.com/fairlead/fairlead/services/"
	args := []string{"build", "-o", c.path("bin") + "/"}
	if c.options.Race {
		args = append(args, "-race")
	}
	for _, s := range []string{"session", "tools", "sandbox", "gateway"} {
		args = append(args, services+s+"/cmd/"+s)
	}
	for _, dir := range []string{"bin", "logs", "data"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil { // users of sandboxes pass through it
			return err
		}
	}
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput() //nolint:gosec // the arguments are ours
	if err != nil {
		return fmt.Errorf("build the programs: %w: %s", err, out)
	}
	return os.WriteFile(c.path("scenario.yaml"), []byte(c.options.Scenario), 0o600)
}

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.options.Dir}, parts...)...)
}

func (c *Cluster) link(ctx context.Context, name, network, target string) (err error) {
	c.Links[name], err = newProxy(ctx, network, target)
	return err
}

// configure finds addresses and makes the processes.
func (c *Cluster) configure(ctx context.Context) error {
	if err := c.files(); err != nil {
		return err
	}
	sandbox, err := c.address(ctx)
	if err != nil {
		return err
	}
	if err := c.link(ctx, record.SandboxService, "tcp", sandbox); err != nil {
		return err
	}
	c.Sandbox = c.process("sandbox", record.SandboxService, sandbox, "--peer", sandbox, "--ops", "", "--data", c.path("data", "sandbox"))
	toolsPeers, err := c.pair(ctx, record.ToolsService, func(name, peer, public string) *Process {
		return c.process(name, record.ToolsService, peer, "--peer", peer, "--public", public, "--ops", "", "--data", c.path("data", name),
			"--auth.mode", "open", // it would ask session, which may be down
			"--config", c.path("tools.yaml"), "--sandbox", c.Links[record.SandboxService].Address())
	}, &c.Tools, &c.ToolsPublic)
	if err != nil {
		return err
	}
	sessionPeers, err := c.pair(ctx, record.SessionService, func(name, peer, public string) *Process {
		return c.process(name, record.SessionService, public, "--peer", peer, "--public", public, "--ops", "", "--data", c.path("data", name),
			"--config", c.path("session.yaml"), "--lease-ttl", c.options.LeaseTTL.String(), "--poll-interval", "250ms",
			"--max-claims", strconv.Itoa(maxClaims),
			"--sandbox", c.Links[record.SandboxService].Address(), "--tools", toolsPeers)
	}, &c.Sessions, &c.Replicas)
	if err != nil {
		return err
	}
	http, err := c.address(ctx)
	if err != nil {
		return err
	}
	public, err := c.address(ctx)
	if err != nil {
		return err
	}
	c.HTTP, c.GRPC = http, public
	c.Gateway = c.process("gateway", record.Gateway, http, "--public", public, "--http", http, "--session", sessionPeers, "--tools", toolsPeers)
	return nil
}

// files writes the programs' configuration files: an agent whose calls are allowed, except those that a
// person decides.
func (c *Cluster) files() error {
	const tools = "[AskUserQuestion, Bash, Glob, LS, Task, check_operation]"
	session := fmt.Sprintf("providers:\n  play: {kind: scripted, scenario: %q}\ndefault-agent: chaos\nagents:\n  chaos: {profile: chaos, tools: %s, %s}\n",
		c.path("scenario.yaml"), tools, c.options.Agent) + c.options.Config
	profile := fmt.Sprintf("mcp-allow-private: [127.0.0.1]\nprofiles:\n  chaos: {allow: %s, ask: [%q]}\n", strings.TrimSuffix(tools, "]")+", 'mcp__*']", c.options.Ask)
	return errors.Join(
		os.WriteFile(c.path("session.yaml"), []byte(session), 0o600),
		os.WriteFile(c.path("tools.yaml"), []byte(profile), 0o600))
}

// pair makes two replicas, each behind a link to its peer face, and returns the links' addresses as a list.
func (c *Cluster) pair(ctx context.Context, service string, one func(name, peer, public string) *Process, to *[]*Process, publics *[]string) (string, error) {
	var links []string
	for n := 1; n <= 2; n++ {
		name := fmt.Sprintf("%s-%d", service, n)
		peer, err1 := c.address(ctx)
		public, err2 := c.address(ctx)
		if err := errors.Join(err1, err2, c.link(ctx, name, "tcp", peer)); err != nil {
			return "", err
		}
		links = append(links, c.Links[name].Address())
		*to = append(*to, one(name, peer, public))
		*publics = append(*publics, public)
	}
	return strings.Join(links, ","), nil
}

func (c *Cluster) process(name, service, address string, args ...string) *Process {
	return &Process{
		Name: name, Service: service, program: c.path("bin", service), args: args, log: c.path("logs", name+".log"), address: address,
		env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + c.options.Dir, "FAIRLEAD_MODEL=" + c.options.Model, "FAIRLEAD_INTERNAL_KEY=" + c.internalKey,
			"FAIRLEAD_DATABASE_URL=postgres://fairlead@" + c.Links[record.Postgres].Address() + "/postgres?sslmode=disable",
		},
	}
}

// address returns a free loopback address below the range of the kernel's client ports, so that it is still
// free when a stopped program comes back.
func (c *Cluster) address(ctx context.Context) (string, error) {
	for port := 20000; port < 32000; port++ {
		a := fmt.Sprintf("127.0.0.1:%d", port)
		if c.taken[a] {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", a)
		if err != nil {
			continue
		}
		c.taken[a] = true
		return a, l.Close()
	}
	return "", errors.New("no free port between 20000 and 32000")
}

// Peers returns the addresses of the peer faces of a service's replicas, through the
// links.
func (c *Cluster) Peers(service string) []string {
	return []string{c.Links[service+"-1"].Address(), c.Links[service+"-2"].Address()}
}

// Effects reads the lines that a session's commands have appended to a file of its
// workspace.
func (c *Cluster) Effects(tenant, session, file string) ([]string, error) {
	text, err := os.ReadFile(c.path("data", "sandbox", tenant, session, "workspace", file))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var lines []string
	for l := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimSuffix(l, "\n"))
	}
	return lines, nil
}

// Logged returns the programs for which holds returns true, each with its log.
func (c *Cluster) Logged(holds func(*Process) bool) []string {
	var names []string
	for _, p := range c.Processes() {
		if holds(p) {
			names = append(names, p.Name+" ("+p.log+")")
		}
	}
	return names
}

// Close ends everything.
func (c *Cluster) Close() error {
	var err error
	for _, p := range []*Process{c.Gateway} {
		err = errors.Join(err, end(p))
	}
	for _, p := range append(append([]*Process{}, c.Sessions...), c.Tools...) {
		err = errors.Join(err, end(p))
	}
	err = errors.Join(err, end(c.Sandbox))
	for _, l := range c.Links {
		if l != nil {
			l.Close()
		}
	}
	if c.Postgres != nil {
		err = errors.Join(err, c.Postgres.Stop())
	}
	return err
}

func end(p *Process) error {
	if p == nil || p.exited == nil {
		return nil
	}
	_ = p.Signal(syscall.SIGCONT) // one that was stopped cannot end
	return p.End(syscall.SIGTERM, 20*time.Second)
}
