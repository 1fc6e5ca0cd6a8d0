// Command fairlead is all of Fairlead in one program: the four services in one
// process, and a client of them for the terminal.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/configtable"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/program"
)

// version is set when the program is linked.
var version = "dev"

// Exit codes, besides 0 and those of turns.
const (
	exitError = 1
	exitUsage = 2
)

func main() {
	program.Main(func(ctx context.Context, args []string) error {
		return run(ctx, args, stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv})
	})
}

// stdio is what a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
}

// commands is the command line.
type commands struct {
	Serve serveCommand `cmd:"" passthrough:"" help:"Run everything in this process: REST, event streams and gRPC."`

	turnCommands

	Sessions     sessionsCommand                                `cmd:"" set:"one=session" help:"List, show, change and export sessions."`
	Agents       agentsCommand                                  `cmd:"" set:"one=agent" help:"Create, change and list agents."`
	Environments environmentsCommand                            `cmd:"" set:"one=environment" help:"Make and change environments, which give sessions another sandbox."`
	Models       modelsCommand                                  `cmd:"" set:"one=model" help:"List models, and name the tenant's own."`
	Budgets      shows[budgets, *sessionv1.ListBudgetsResponse] `cmd:"" help:"Show budgets and their use."`
	Checkpoints  checkpointsCommand                             `cmd:"" set:"one=checkpoint" help:"Make and list checkpoints of sessions."`
	Files        filesCommand                                   `cmd:"" set:"one=file" help:"Read and change the files of sessions."`
	Upload       uploadCommand                                  `cmd:"" help:"Upload a file for use anywhere, and print its name."`
	Schedules    schedulesCommand                               `cmd:"" set:"one=schedule" help:"Send messages to sessions at set times."`
	Triggers     triggersCommand                                `cmd:"" set:"one=trigger" help:"Let other systems begin turns."`
	Webhooks     webhooksCommand                                `cmd:"" set:"one=webhook" help:"Notify other systems when turns end."`

	extensionCommands
	approvalCommands
	accessCommands

	Nodes       nodesCommand       `cmd:"" help:"List sandbox nodes and drain them."`
	Demo        demoCommand        `cmd:"" help:"Watch the agent coder repair a small program whose test fails."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
	ConfigTable configTableCommand `cmd:"" name:"config-table" hidden:"" help:"Print the tables of docs/configuration.md."`
}

// turnCommands run turns.
type turnCommands struct {
	Run  turnOf[runCommand]  `cmd:"" help:"Run one turn and show it."`
	Chat chatCommand         `cmd:"" help:"Talk to an agent, line by line."`
	Call turnOf[callCommand] `cmd:"" help:"Call a tool in a session, without the model."`
}

// extensionCommands are about what users bring for their agents.
type extensionCommands struct {
	Variables variablesCommand `cmd:"" set:"one=variable" help:"Set environment variables of your commands."`
	MCP       mcpCommand       `cmd:"" set:"one=server" name:"mcp" help:"Connect MCP servers, whose tools your agents get."`
	Skills    skillsCommand    `cmd:"" set:"one=skill" help:"Give agents skills: folders with instructions and scripts."`
}

// accessCommands are about who may call a server.
type accessCommands struct {
	Tenants tenantsCommand                                   `cmd:"" set:"one=tenant" help:"Make and list tenants."`
	Admin   adminCommand                                     `cmd:"" help:"Set up a server: its first admin and key."`
	Login   loginCommand                                     `cmd:"" help:"Keep a credential for a server."`
	Logout  logoutCommand                                    `cmd:"" help:"Forget the credential for a server."`
	Whoami  shows[whoami, *sessionv1.GetCurrentUserResponse] `cmd:"" help:"Show who you are for a server, and what you may do."`
	Keys    keysCommand                                      `cmd:"" set:"one=key" help:"Make, list and revoke keys."`
	Users   usersCommand                                     `cmd:"" set:"one=user" help:"Make, list, change and delete users."`
	Audit   auditCommand                                     `cmd:"" help:"Export and verify the log of all changes."`
}

// exited ends the parser's work where kong would end the process.
type exited struct{ code int }

// run runs one command.
func run(ctx context.Context, args []string, s stdio) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exited)
			if !ok {
				panic(r)
			}
			err = nil
			if e.code != 0 {
				err = &program.ExitError{Code: e.code}
			}
		}
	}()
	parser, err := kong.New(new(commands), kong.Name("fairlead"),
		kong.Description("Fairlead runs agents: sessions, turns, tools and their sandbox."),
		kong.Writers(s.out, s.err), kong.Exit(func(code int) { panic(exited{code}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s))
	if err != nil {
		return fmt.Errorf("the command line: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return &program.ExitError{Code: exitUsage, Err: misused(err)}
	}
	return explained(parsed.Run())
}

// explained gives errors their exit codes.
func explained(err error) error {
	var exit *program.ExitError
	var wrong *config.Error
	if err == nil || errors.Is(err, config.ErrHelp) || errors.As(err, &exit) || errors.As(err, &wrong) {
		return err
	}
	return &program.ExitError{Code: exitError, Err: err}
}

// versionCommand prints the version.
type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(s stdio) error {
	_, err := fmt.Fprintln(s.out, version)
	return err
}

// misused says which help describes the command of a wrong command line, and
// which flag is near an unknown one.
func misused(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil || parse.Context.Selected() == nil {
		return fmt.Errorf("%w (fairlead --help lists the commands)", err)
	}
	command := parse.Context.Selected()
	for command.Type == kong.ArgumentNode {
		command = command.Parent
	}
	near := ""
	if _, flag, ok := strings.Cut(err.Error(), "unknown flag --"); ok && !strings.Contains(flag, "did you mean") {
		near = similarFlag(command, strings.TrimSpace(flag))
	}
	return fmt.Errorf("%w%s (%s --help lists what it takes)", err, near, command.FullPath())
}

// similarFlag proposes a flag of the command that shares a word with name.
func similarFlag(command *kong.Node, name string) string {
	words := strings.Split(name, "-")
	for _, group := range command.AllFlags(true) {
		for _, f := range group {
			for word := range strings.SplitSeq(f.Name, "-") {
				if slices.Contains(words, word) {
					return fmt.Sprintf(", did you mean \"--%s\"?", f.Name)
				}
			}
		}
	}
	return ""
}

// configTableCommand prints docs/configuration.md.
type configTableCommand struct{}

// Run prints the page.
func (configTableCommand) Run(s stdio) error {
	all := host.Defaults(dataHome)
	return configtable.Write(s.out, config.Table(&all, loadOptions(nil, nil)))
}
