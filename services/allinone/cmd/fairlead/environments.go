package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
)

// environmentsCommand makes and changes environments.
type environmentsCommand struct {
	List    lists[listEnvironments, *sessionv1.Environment]   `cmd:"" help:"List the environments."`
	Get     shows[anEnvironment, *sessionv1.Environment]      `cmd:"" help:"Show an environment."`
	Create  shows[createEnvironment, *sessionv1.Environment]  `cmd:"" help:"Create an environment from a file."`
	Update  shows[updateEnvironment, *sessionv1.Environment]  `cmd:"" help:"Make a new version of an environment from a file, for new sessions."`
	Archive shows[archiveEnvironment, *sessionv1.Environment] `cmd:"" help:"Archive an environment: it takes no new sessions."`
}

// environmentFile is the file of an environment.
type environmentFile struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"A YAML file with network, limits, mounts, setup, variables and description (docs/environments.md)."`
	spec *sessionv1.EnvironmentSpec
}

func (f *environmentFile) ready() (err error) {
	f.spec, err = session.EnvironmentFile(f.File)
	return err
}

// anEnvironment is a command that shows an environment.
type anEnvironment struct {
	Environment string `arg:"" help:"The environment."`
	jsonOne
}

func (e anEnvironment) name() string { return "environments/" + bare(e.Environment) }

func (e anEnvironment) request() proto.Message {
	return &sessionv1.GetEnvironmentRequest{Name: e.name()}
}

func (anEnvironment) show(s stdio, e *sessionv1.Environment) error {
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
	return whole(s.out, rows)
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

type listEnvironments struct {
	Archived bool `help:"Also list archived environments."`
	jsonList
}

func (f listEnvironments) request() proto.Message {
	return &sessionv1.ListEnvironmentsRequest{ShowArchived: f.Archived}
}

func (listEnvironments) row(e *sessionv1.Environment) [][]string {
	return [][]string{
		{"ENVIRONMENT", bare(e.GetName())}, {"VERSION", version32(e.GetVersion())}, {"ARCHIVED", stamp(e.GetArchiveTime())},
		{"DESCRIPTION", e.GetSpec().GetDescription()},
	}
}

type createEnvironment struct {
	environmentFile
	anEnvironment
}

func (f createEnvironment) request() proto.Message {
	return &sessionv1.CreateEnvironmentRequest{EnvironmentId: bare(f.Environment), Spec: f.spec}
}

type updateEnvironment struct {
	environmentFile
	Expected int32 `placeholder:"N" help:"The newest version that you know. The default is the newest one."`
	anEnvironment
}

func (f updateEnvironment) request() proto.Message {
	return &sessionv1.UpdateEnvironmentRequest{Name: f.name(), Spec: f.spec, ExpectedVersion: f.Expected}
}

func (f updateEnvironment) complete(ctx context.Context, b *backend, r proto.Message) error {
	if f.Expected != 0 {
		return nil
	}
	found, err := get[*sessionv1.Environment](ctx, b, &sessionv1.GetEnvironmentRequest{Name: f.name()})
	r.(*sessionv1.UpdateEnvironmentRequest).ExpectedVersion = found.GetVersion()
	return err
}

type archiveEnvironment struct {
	Undo bool `help:"Bring the environment back."`
	anEnvironment
}

func (f archiveEnvironment) request() proto.Message {
	return &sessionv1.ArchiveEnvironmentRequest{Name: f.name(), Undo: f.Undo}
}
