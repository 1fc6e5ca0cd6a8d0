//go:build linux

// Package sandbox runs the commands of sessions in isolation and works on their files. It owns the
// workspaces of one node; the directory is the truth, there is no database.
//
// It fails closed. The operator chooses a driver, which makes sandboxes, and a level, `full` or `basic`. If
// a part of that level cannot be applied, the service does not start, or the command is refused.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/diskspace"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
	"github.com/fairlead/fairlead/services/sandbox/internal/server"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

// Deps are the service's dependencies.
type Deps struct {
	Log *slog.Logger
	// Driver replaces the drivers of this module.
	Driver Driver
	// Fault is called at each point of a change at which a service may die. Only tests set it.
	Fault func(session, call, point string)
}

// boxFault is Fault as the node calls it.
func (d Deps) boxFault() func(c box.Call, method, point string) {
	if d.Fault == nil {
		return nil
	}
	return func(c box.Call, _, point string) { d.Fault(strings.TrimPrefix(c.Session, "sessions/"), c.ID, point) }
}

// Service is the sandbox service, an rpc.Component without public RPCs.
type Service struct {
	node      *box.Node
	server    *server.Server
	runner    Runner
	groups    cgroup.Hierarchy // nil except at level `full`
	network   *egress.Network
	diskSpace *diskspace.Watch
	mounts    *mount.Set
	gone      atomic.Pointer[string] // the mounts without their folder, as last logged
	log       *slog.Logger
}

// Supported returns nil: this system can run sandboxes.
func Supported() error { return nil }

// probeTimeout limits the first command, which proves that isolation works.
const probeTimeout = 30 * time.Second

// New locks the data directory and runs a first command, which proves that all parts of the level can be
// applied here. The error names the missing part. The caller must close the service.
func New(ctx context.Context, c Config, d Deps) (_ *Service, err error) {
	if err := config.Check(&c); err != nil {
		return nil, err
	}
	data, err := realPath(c.Data)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := d.Driver.check(c); err != nil {
		return nil, err
	}
	level, why := c.level(d.Driver)
	driver := cmp.Or(d.Driver.Name, c.Driver)
	s := &Service{log: d.Log}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sandbox driver %s, level %s: %w", driver, level, err), s.release())
		}
	}()
	trust, err := s.openNetwork(c.Egress, data, d.Log)
	if err != nil {
		return nil, err
	}
	remotes, err := repository.NewRemotes(c.Repositories.Remotes, s.network)
	if err != nil {
		return nil, fmt.Errorf("repositories: %w", err)
	}
	limits := c.Limits.box()
	if level != LevelFull {
		limits.CPUs = 0 // which need control groups
	}
	owners, included, err := s.isolate(ctx, c, d.Driver, level, data, trust, d.Log)
	if err != nil {
		return nil, c.advise(ctx, level, err)
	}
	observer, err := newObserver(level)
	if err != nil {
		return nil, err
	}
	leftovers := erase.NewLater(d.Log)
	if err := observeLeftovers(leftovers.Pending); err != nil {
		return nil, err
	}
	if s.mounts, err = c.mounts(data, owners, leftovers, d.Driver.Unmapped); err != nil {
		return nil, err
	}
	trees, err := c.trees(data, leftovers)
	if err != nil {
		return nil, err
	}
	folder := diskspace.Folder{Name: "data directory", Path: data}
	if s.diskSpace, err = c.watch(folder); err != nil {
		return nil, err
	}
	keep, err := s.openQuota(c, level, data, owners)
	if err != nil {
		return nil, err
	}
	shown := box.Shown{Mounts: s.mounts}
	if trees != nil {
		shown.Trees = trees
	}
	s.node, err = box.Open(box.Options{
		Dir: data, Name: nodeName(c.Node), Runner: s.runner, Owners: owners, Limits: limits,
		MaxExecs: c.Limits.Execs, MaxSessionExecs: c.Limits.SessionExecs, Sandboxes: box.Sandboxes{Spares: c.SpareSandboxes, Escapes: c.Driver == DriverNone},
		Keep: box.Retention{Finished: c.Limits.KeepResults, For: c.Limits.KeepFor}, Network: s.network,
		Shown: shown, DiskSpace: s.diskSpace, DataSpace: diskspace.New(c.Disk.FreeBytes, c.Disk.FreeInodes, folder),
		Upkeep: box.Upkeep{Reclaim: server.Reclaim, Tidy: snapshot.Tidy, Recover: server.Recover}, Quota: keep, Leftovers: leftovers, Fault: d.boxFault(),
		Observer: observer, Log: d.Log,
	})
	if err != nil {
		return nil, err
	}
	if trees != nil {
		if err := trees.Recover(); err != nil {
			return nil, err
		}
	}
	if err := s.sweep(ctx, c, data); err != nil {
		return nil, err
	}
	if err := s.probe(ctx, probeTimeout+d.Driver.StartTimeout, data, owners, limits); err != nil {
		return nil, c.advise(ctx, level, err)
	}
	objects, err := c.ObjectStore.open()
	if err != nil {
		return nil, err
	}
	info := server.Info{
		Node: nodeName(c.Node), Level: level, Driver: driver, Includes: included,
		NetworkKind: c.networkKind(), Quota: quotaKind(keep),
		Network: s.network, Mounts: s.mounts, Trees: trees, Snapshots: c.Limits.Snapshots, SnapshotBytes: c.Limits.SnapshotBytes, Objects: objects,
		Repositories: server.Repositories{Remotes: remotes, Timeout: c.Repositories.Timeout},
	}
	d.Log.InfoContext(ctx, "sandbox ready", "driver", driver, "isolation_level", level, "why", why, "includes", info.Includes, "data", data)
	s.server = server.New(s.node, info)
	return s, nil
}

// realPath returns the canonical path of a folder, and makes the folder if it is missing. Remains of a
// crash are named after that path, and must be found by whatever path the next start uses.
func realPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// watch returns a watch of the disks that the node writes to.
func (c Config) watch(data diskspace.Folder) (*diskspace.Watch, error) {
	folders := []diskspace.Folder{data}
	if path := c.ObjectStore.folder(); path != "" && path != data.Path {
		folders = append(folders, diskspace.Folder{Name: "object store", Path: path})
	}
	for _, f := range folders {
		if err := os.MkdirAll(f.Path, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder %s: %w", f.Path, err)
		}
	}
	w := diskspace.New(c.Disk.FreeBytes, c.Disk.FreeInodes, folders...)
	return w, w.Observe(otel.Meter("github.com/fairlead/fairlead/services/sandbox"))
}

// openNetwork checks what commands may reach, and returns the file of certificates that commands with a
// network trust.
func (s *Service) openNetwork(c Egress, data string, log *slog.Logger) (trust string, err error) {
	dir := filepath.Join(data, ".egress")
	authority, err := egress.OpenAuthority(dir, time.Now)
	if err != nil {
		return "", err
	}
	roots, err := c.roots()
	if err != nil {
		return "", fmt.Errorf("egress: %w", err)
	}
	proxy, err := egress.New(egress.Options{
		Roots: roots, Ceiling: c.Ceiling, Credentials: c.Credentials, Authority: authority, Log: log,
		Limits: egress.Limits{Connections: c.Connections, Idle: c.Idle, Total: c.Total, Bytes: c.Bytes},
	})
	if err != nil {
		return "", fmt.Errorf("egress: %w", err)
	}
	s.network = egress.NewNetwork(proxy, c.Requests, log)
	return authority.Bundle(dir)
}

// probe runs a command in the same way as every other.
func (s *Service) probe(ctx context.Context, timeout time.Duration, data string, owners box.Owners, l box.Limits) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dir, err := box.PassingFolder(data)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	owner := box.Self
	if owners.Base >= 0 {
		owner = box.Owner{UID: owners.Base, GID: owners.Base}
	}
	defer s.runner.Stop(dir)
	p, err := s.runner.Start(ctx, box.Command{
		Sandbox: box.Sandbox{ID: "probe", Workspace: dir, Home: dir, Owner: owner, Limits: l},
		Argv:    []string{"true"}, Dir: "/", Limits: l,
	})
	if err != nil {
		return fmt.Errorf("a first command cannot be isolated: %w", err)
	}
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	said, _ := io.ReadAll(io.LimitReader(p.Stderr(), 4096))
	exit := p.Wait()
	_ = errors.Join(p.Stdout().Close(), p.Stderr().Close())
	if exit.Lost || exit.Status != 0 || exit.Signal != 0 {
		return fmt.Errorf("a first command did not run in the sandbox (status %d, signal %d): %s", exit.Status, exit.Signal, said)
	}
	return nil
}

// networkKind returns the most that commands may reach.
func (c Config) networkKind() string {
	switch {
	case c.Driver == DriverNone:
		return "unrestricted"
	case len(c.Egress.Ceiling) == 0:
		return "none"
	}
	return "allowlist"
}

func nodeName(configured string) string {
	if configured != "" {
		return configured
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "sandbox"
}

// RegisterPublic registers nothing: all RPCs of this service are internal.
func (s *Service) RegisterPublic(grpc.ServiceRegistrar) {}

// RegisterPeer registers the internal services.
func (s *Service) RegisterPeer(r grpc.ServiceRegistrar) { s.server.Register(r) }

// Ready returns an error if the node takes no new work.
func (s *Service) Ready(context.Context) error { return s.node.Ready() }

// Notes says that mounts lack their folder. The log names them, whenever they change.
func (s *Service) Notes() []string {
	gone := s.mounts.Gone()
	names := strings.Join(gone, ", ")
	if was := s.gone.Swap(&names); was == nil && names != "" || was != nil && *was != names {
		s.log.Warn("mounts without their folder on this machine: sessions that require one cannot use their workspace, the others go on without it", "mounts", names)
	}
	if len(gone) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("sandbox: the folders of %d mounts are missing on this machine; the log names them", len(gone))}
}

// Run does background cleaning until the context ends.
func (s *Service) Run(ctx context.Context) error { return s.node.Run(ctx) }

// Close kills running commands, waits for their end, and removes what the service made on the machine
// besides its data. No RPC may run any more.
func (s *Service) Close() error { return s.release() }

func (s *Service) release() error {
	var faults []error
	if s.node != nil {
		faults = append(faults, s.node.Close())
	}
	if s.server != nil {
		s.server.Wait()
	}
	if s.runner != nil {
		faults = append(faults, s.runner.Close())
	}
	if s.groups != nil && s.node != nil { // otherwise the groups belong to the directory's holder
		faults = append(faults, s.groups.Close())
	}
	return errors.Join(faults...)
}
