//go:build linux

package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/prerequisite"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/bubblewrap"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/none"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/oci"
)

// Drivers, which make sandboxes.
const (
	// DriverBubblewrap makes them with bubblewrap.
	DriverBubblewrap = "bubblewrap"
	// DriverOCI makes them with an OCI runtime. It needs root.
	DriverOCI = "oci"
	// DriverNone makes none: commands are plain processes. It is only for development.
	DriverNone = "none"
)

// driverKubernetes is the driver of the program sandbox-kubernetes.
const driverKubernetes = "kubernetes"

// Driver is a driver outside of this module. A program passes it to New, so that other programs do not link what
// it needs. The zero value stands for the drivers of this module.
type Driver struct {
	// Name and Level are what the service reports. A driver outside of this module has one level.
	Name, Level string
	// StartTimeout is how long a sandbox may take to start, beyond the time of its first command.
	StartTimeout time.Duration
	// Unmapped means that the driver cannot map the owners of files (see mount.Options).
	Unmapped bool
	// New makes the runner, and returns what it applies to every command.
	New func(ctx context.Context, g DriverDeps) (Runner, []string, error)
}

// DriverDeps is what the service provides to a Driver.
type DriverDeps struct {
	Config Config
	// Data is the data directory, without links.
	Data string
	// Owners are the users of workspaces.
	Owners box.Owners
	// Network serves the way out of a sandbox.
	Network func(s box.Sandbox, l net.Listener) (io.Closer, error)
	// Trust is the file of the certificates that sandboxes with a network trust.
	Trust string
	Log   *slog.Logger
}

// Runner is what a driver makes. The service closes it after the last command has ended.
type Runner interface {
	box.Runner
	io.Closer
}

// check reports settings that do not fit the program's driver.
func (d Driver) check(c Config) error {
	switch {
	case d.New == nil && c.Driver == "":
		return errors.New("driver: must be one of bubblewrap, oci, none")
	case d.New != nil && c.Driver != "":
		return fmt.Errorf("driver: %q is not in this program, which has only the driver `%s`: leave the key out", c.Driver, d.Name)
	case d.New != nil && c.Level != LevelAuto:
		return fmt.Errorf("level: the driver `%s` has its own level and cannot apply %q: leave it out", d.Name, c.Level)
	}
	return nil
}

// isolate sets up a driver for a level, and returns what that includes.
func (s *Service) isolate(ctx context.Context, c Config, d Driver, level, data, trust string, log *slog.Logger) (box.Owners, []string, error) {
	owners := box.Owners{Base: -1}
	if d.New != nil {
		if os.Getuid() == 0 {
			owners = box.Owners{Base: c.UIDBase, Count: c.UIDCount}
		}
		r, included, err := d.New(ctx, DriverDeps{Config: c, Data: data, Owners: owners, Network: s.network.Serve, Trust: trust, Log: log})
		if err != nil {
			return owners, nil, err
		}
		s.runner = r
		return owners, included, nil
	}
	if c.Driver == DriverNone {
		r, err := none.New(ctx, log)
		if err != nil {
			return owners, nil, err
		}
		s.runner = r
		return owners, none.Includes, nil
	}
	root := os.Getuid() == 0
	if root {
		if err := prerequisite.Capabilities(); err != nil {
			return owners, nil, err
		}
	}
	if level == LevelFull {
		if !root {
			return owners, nil, errors.New("it needs root: start the service as root, or choose the level `basic`")
		}
		groups, err := cgroup.Open(cgroup.Root, c.CgroupParent+"/"+nameOf(data))
		if err != nil {
			return owners, nil, err
		}
		s.groups = groups
		log.InfoContext(ctx, "control groups of sandboxes", "version", groups.Name(), "below", filepath.Join(groups.Below(), c.CgroupParent))
		if c.FavorMoves {
			if err := cgroup.FavorMoves(true); err != nil {
				return owners, nil, err
			}
			log.InfoContext(ctx, "the machine's control groups are set to quick moves (favordynmods)")
		}
		owners = box.Owners{Base: c.UIDBase, Count: c.UIDCount}
	} else if root {
		owners = box.Owners{Base: c.UIDBase} // one user, but not root
	}
	r, err := s.newRunner(ctx, c, data, trust, log)
	if err != nil {
		return owners, nil, err
	}
	s.runner = r
	included := includes(level, owners, s.groups)
	if r, ok := r.(*oci.Runner); ok && r.OwnKernel {
		included = append(included, "own-kernel")
	}
	return owners, included, nil
}

// advise adds to an error what this machine lacks for sandboxes, and what to do about it.
func (c Config) advise(ctx context.Context, level string, err error) error {
	if err == nil || c.Driver != DriverBubblewrap && c.Driver != DriverOCI {
		return err
	}
	root := os.Getuid() == 0
	s := prerequisite.Sandboxes{Groups: root && level == LevelFull, OtherUsers: root, FirstUser: c.UIDBase, Users: 1}
	if level == LevelFull {
		s.Users = c.UIDCount
	}
	if c.Driver == DriverBubblewrap {
		s.Bubblewrap = cmp.Or(c.Bubblewrap, "bwrap")
	}
	if advice := prerequisite.Advice(ctx, s); advice != "" {
		return fmt.Errorf("%w%s", err, advice)
	}
	return err
}

// nameOf returns the name of what is made on the machine for a data directory, so that two services do not
// sweep each other's.
func nameOf(data string) string {
	id := sha256.Sum256([]byte(data))
	return hex.EncodeToString(id[:8])
}

// newRunner makes the runner of an isolating driver.
func (s *Service) newRunner(ctx context.Context, c Config, data, trust string, log *slog.Logger) (Runner, error) {
	switch c.Driver {
	case DriverBubblewrap:
		return bubblewrap.New(ctx, bubblewrap.Options{
			Name: nameOf(data), Path: c.Bubblewrap, Init: c.Init, ReadOnly: c.ReadOnlyPaths, Groups: s.groups, OtherUsers: os.Getuid() == 0,
			Network: s.network.Serve, Trust: trust, Max: c.MaxSandboxes, Idle: c.IdleTimeout, Log: log,
		})
	case DriverOCI:
		o := s.containers(c, data)
		o.Init, o.ReadOnly, o.Groups = c.Init, c.ReadOnlyPaths, s.groups
		o.Network, o.Trust, o.Max, o.Idle, o.Log = s.network.Serve, trust, c.MaxSandboxes, c.IdleTimeout, log
		return oci.New(ctx, o)
	}
	return nil, fmt.Errorf("there is no driver %q", c.Driver)
}

// containers returns the driver oci's options for a data directory.
func (s *Service) containers(c Config, data string) oci.Options {
	parent := filepath.Join(c.CgroupParent+"-oci", nameOf(data))
	if s.groups != nil {
		parent = filepath.Join(s.groups.Below(), parent) // as the runtime counts, from the root that it sees
	}
	return oci.Options{ // the id after those of workspaces is that of users' storage
		Runtime: c.OCI.Runtime, State: filepath.Join(c.OCI.State, nameOf(data)), CgroupParent: parent, Setup: c.UIDBase + c.UIDCount + 1,
	}
}

// sweep removes the remains of an earlier service on the machine. Only the holder of the data directory may
// do so: all remains are named after it. Control groups come first, because frozen processes do not end
// otherwise.
func (s *Service) sweep(ctx context.Context, c Config, data string) error {
	if s.groups != nil {
		if err := s.groups.Sweep(); err != nil {
			return err
		}
	}
	if c.Driver != DriverOCI && os.Getuid() == 0 {
		if err := oci.Clear(ctx, s.containers(c, data)); err != nil { // they do not affect other drivers
			s.log.WarnContext(ctx, "cannot remove the leftovers of an earlier service with the driver `oci`", "error", err)
		}
	}
	if r, ok := s.runner.(interface{ Sweep(context.Context) error }); ok {
		return r.Sweep(ctx)
	}
	return nil
}

// includes lists what a level applies to every command.
func includes(level string, o box.Owners, g cgroup.Hierarchy) []string {
	all := []string{
		"user-namespace", "pid-namespace", "network-namespace", "ipc-namespace", "uts-namespace", "mount-namespace", "cgroup-namespace",
		"no-network", "read-only-root", "masked-proc", "no-capabilities", "no-new-privileges", "seccomp", "clean-environment",
		"file-size-limit", "open-files-limit", "workspace-limit", "output-limit", "wall-time-limit",
	}
	if o.Base >= 0 {
		all = append(all, "tmp-inode-limit")
	}
	if level == LevelFull {
		return append(all, g.Name(), "memory-cgroup", "no-swap", "pids-cgroup", "cpu-cgroup", "uid-per-workspace")
	}
	all = append(all, "memory-rlimit", "processes-rlimit")
	if o.Base >= 0 {
		all = append(all, "unprivileged-uid")
	}
	return all
}
