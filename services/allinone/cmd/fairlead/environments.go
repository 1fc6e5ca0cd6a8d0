package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session"
)

// environmentsCommand makes and changes environments.
type environmentsCommand struct {
	List    listEnvironmentsCommand   `cmd:"" help:"List the environments."`
	Get     getEnvironmentCommand     `cmd:"" help:"Show an environment."`
	Create  createEnvironmentCommand  `cmd:"" help:"Create an environment from a file."`
	Update  updateEnvironmentCommand  `cmd:"" help:"Make a new version of an environment from a file, for new sessions."`
	Archive archiveEnvironmentCommand `cmd:"" help:"Archive an environment: it takes no new sessions."`
}

// environmentFile is the file of an environment.
type environmentFile struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"A YAML file with network, limits, mounts, setup, variables and description (docs/environments.md)."`
}

// environmentRef names an environment.
type environmentRef struct {
	Environment string `arg:"" help:"The environment."`
}

func (r environmentRef) name() string { return "environments/" + bare(r.Environment) }

// environmentOutput is how a command shows an environment.
type environmentOutput struct {
	JSON bool `name:"json" help:"Print the environment as JSON."`
}

func (o environmentOutput) print(w io.Writer, e *sessionv1.Environment) error {
	if o.JSON {
		return printJSON(w, []*sessionv1.Environment{e})
	}
	var hosts []string
	for _, r := range e.GetSpec().GetNetwork() {
		hosts = append(hosts, r.GetHost())
	}
	rows := [][]string{
		{"environment", bare(e.GetName())}, {"version", version32(e.GetVersion())}, {"description", e.GetSpec().GetDescription()},
		{"network", strings.Join(hosts, " ")}, {"limits", limitsText(e.GetSpec().GetLimits())}, {"mounts", mountsText(e.GetSpec().GetMounts())},
		{"variables", strings.Join(slices.Sorted(maps.Keys(e.GetSpec().GetVariables())), " ")}, {"archived", stamp(e.GetArchiveTime())},
	}
	for _, command := range e.GetSpec().GetSetup() {
		rows = append(rows, []string{"setup", command})
	}
	return whole(w, rows)
}

// mountsText lists mounts, each with what its request says.
func mountsText(mounts []*commonv1.Mount) string {
	all := make([]string, 0, len(mounts))
	for _, m := range mounts {
		words := []string{m.GetName()}
		for _, x := range []struct{ key, value string }{{"path", m.GetPath()}, {"alias", m.GetAlias()}, {"mode", m.GetMode()}} {
			if x.value != "" {
				words = append(words, x.key+"="+x.value)
			}
		}
		if m.GetOptional() {
			words = append(words, "optional")
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}

// limitsText lists limits with the keys of a file.
func limitsText(l *sessionv1.AgentLimits) string {
	var all []string
	for _, x := range []struct {
		key string
		n   int64
	}{
		{"memory", l.GetMemoryBytes()}, {"processes", int64(l.GetProcesses())}, {"file-size", l.GetFileBytes()}, {"open-files", int64(l.GetOpenFiles())},
		{"output", l.GetOutputBytes()}, {"flood", l.GetFloodBytes()}, {"workspace-bytes", l.GetWorkspaceBytes()}, {"workspace-inodes", l.GetWorkspaceInodes()},
	} {
		if x.n != 0 {
			all = append(all, fmt.Sprintf("%s=%d", x.key, x.n))
		}
	}
	if n := l.GetCpuMillis(); n != 0 {
		all = append(all, fmt.Sprintf("cpus=%v", float64(n)/1000))
	}
	if t := l.GetTimeout(); t != nil {
		all = append(all, "timeout="+t.AsDuration().String())
	}
	if t := l.GetMaxTimeout(); t != nil {
		all = append(all, "max-timeout="+t.AsDuration().String())
	}
	return strings.Join(all, " ")
}

// change makes a change, which may be repeated, and shows the environment.
func (o environmentOutput) change(ctx context.Context, w io.Writer, request func() (*sessionv1.Environment, error)) error {
	var e *sessionv1.Environment
	err := retry(ctx, func() (err error) {
		e, err = request()
		return err
	})
	if err != nil {
		return terminal.Explained(err)
	}
	return o.print(w, e)
}

// listEnvironmentsCommand lists environments.
type listEnvironmentsCommand struct {
	Archived bool `help:"Also list archived environments."`
	JSON     bool `name:"json" help:"Print one JSON environment per line."`
	target
}

// Run lists environments.
func (c listEnvironmentsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Environment
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.places.ListEnvironments(ctx, &sessionv1.ListEnvironmentsRequest{PageSize: size, PageToken: token, ShowArchived: c.Archived})
			all = append(all, resp.GetEnvironments()...)
			return len(resp.GetEnvironments()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"ENVIRONMENT", "VERSION", "ARCHIVED", "DESCRIPTION"}}
		for _, e := range all {
			rows = append(rows, []string{bare(e.GetName()), version32(e.GetVersion()), stamp(e.GetArchiveTime()), e.GetSpec().GetDescription()})
		}
		return columns(s.out, rows)
	})
}

// getEnvironmentCommand shows an environment.
type getEnvironmentCommand struct {
	environmentRef
	environmentOutput
	target
}

// Run shows an environment.
func (c getEnvironmentCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.places.GetEnvironment(ctx, &sessionv1.GetEnvironmentRequest{Name: c.name()})
		if err != nil {
			return terminal.Explained(err)
		}
		return c.print(s.out, resp.GetEnvironment())
	})
}

// createEnvironmentCommand creates an environment.
type createEnvironmentCommand struct {
	environmentRef
	environmentFile
	environmentOutput
	target
}

// Run creates an environment.
func (c createEnvironmentCommand) Run(ctx context.Context, s stdio) error {
	spec, err := session.EnvironmentFile(c.File)
	if err != nil {
		return err
	}
	r := &sessionv1.CreateEnvironmentRequest{EnvironmentId: bare(c.Environment), Spec: spec, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return c.change(ctx, s.out, func() (*sessionv1.Environment, error) {
			resp, err := b.places.CreateEnvironment(ctx, r)
			return resp.GetEnvironment(), err
		})
	})
}

// updateEnvironmentCommand makes a new version.
type updateEnvironmentCommand struct {
	environmentRef
	environmentFile
	Expected int32 `placeholder:"N" help:"The newest version that you know. The default is the newest one."`
	environmentOutput
	target
}

// Run makes a new version.
func (c updateEnvironmentCommand) Run(ctx context.Context, s stdio) error {
	spec, err := session.EnvironmentFile(c.File)
	if err != nil {
		return err
	}
	r := &sessionv1.UpdateEnvironmentRequest{Name: c.name(), Spec: spec, ExpectedVersion: c.Expected, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		if r.ExpectedVersion == 0 {
			resp, err := b.places.GetEnvironment(ctx, &sessionv1.GetEnvironmentRequest{Name: c.name()})
			if err != nil {
				return terminal.Explained(err)
			}
			r.ExpectedVersion = resp.GetEnvironment().GetVersion()
		}
		return c.change(ctx, s.out, func() (*sessionv1.Environment, error) {
			resp, err := b.places.UpdateEnvironment(ctx, r)
			return resp.GetEnvironment(), err
		})
	})
}

// archiveEnvironmentCommand archives an environment.
type archiveEnvironmentCommand struct {
	environmentRef
	Undo bool `help:"Bring the environment back."`
	environmentOutput
	target
}

// Run archives an environment.
func (c archiveEnvironmentCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.ArchiveEnvironmentRequest{Name: c.name(), Undo: c.Undo, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return c.change(ctx, s.out, func() (*sessionv1.Environment, error) {
			resp, err := b.places.ArchiveEnvironment(ctx, r)
			return resp.GetEnvironment(), err
		})
	})
}
