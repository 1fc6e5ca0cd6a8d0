//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
)

// Levels of isolation.
const (
	// LevelFull limits each command by control groups and gives each workspace its own user. It needs root.
	LevelFull = "full"
	// LevelBasic limits each process of a command, watches their total, and runs all commands as one user.
	LevelBasic = "basic"
	// LevelAuto is `full` for root and `basic` for other users. It depends on nothing else: a missing part
	// of `full` is an error, never a reason for `basic`.
	LevelAuto = "auto"
	// LevelNone is the level of the driver `none`. It cannot be chosen.
	LevelNone = "none"
)

// Ways to limit the size of workspaces.
const (
	// QuotaProject makes the file system refuse an excess at once.
	QuotaProject = "project"
	// QuotaCounted ends a command that wrote too much, within about a quarter of a second.
	QuotaCounted = "counted"
	// QuotaAuto is QuotaProject if the file system proves to support it.
	QuotaAuto = "auto"
)

// Config of the service. Sizes are in bytes.
type Config struct {
	Data string `key:"data" help:"directory that holds the workspaces"`
	Node string `key:"node" help:"name of this node; empty takes the host's name, or with fairlead serve on Postgres a generated name that the data directory keeps"`
	Isolation
	Sandboxes
	ControlGroups
	Users
	Limits         Limits       `key:"limits"`
	Disk           Disk         `key:"disk"`
	Trees          Trees        `key:"trees"`
	WorkspaceQuota string       `key:"workspace-quota" help:"how the size of workspaces is limited: project (by the project quota of XFS or ext4, projects from uid-base on; level full), counted (by periodic counting), or auto, which is project where the file system supports project quotas"`
	ObjectStore    ObjectStore  `key:"object-store"`
	Egress         Egress       `key:"egress"`
	Repositories   Repositories `key:"repositories"`
	HostFiles
}

// Isolation is how commands are kept from the host.
type Isolation struct {
	Level       string `key:"level" help:"isolation of commands: full, basic, or auto, which is full as root and basic otherwise"`
	Driver      string `key:"driver" help:"backend that creates sandboxes: bubblewrap, oci (runc, crun or gVisor's runsc), or none, which isolates nothing and is only for development; empty in sandbox-kubernetes, which creates pods"`
	NoIsolation bool   `key:"allow-no-isolation" help:"allow the driver none: commands then run as the service's own user, with all its rights"`
	Bubblewrap  string `key:"bubblewrap" help:"path of the bwrap program; empty searches PATH"`
	OCI         OCI    `key:"oci"`
	Init        string `key:"init" help:"path of the program that is a sandbox's first process; empty takes the built-in program"`
}

// Sandboxes is how many sandboxes there are, for how long, and what all of them show.
type Sandboxes struct {
	IdleTimeout    time.Duration `key:"idle-timeout" help:"how long a sandbox is kept after its last command ends"`
	MaxSandboxes   int           `key:"max-sandboxes" help:"the most sandboxes on this node; above that the sandbox that is idle for the longest time is evicted, or the command is refused"`
	SpareSandboxes int           `key:"spare-sandboxes" help:"sandboxes that are kept ready for new sessions; 0 for none"`
	ReadOnlyPaths  []string      `key:"read-only-paths" help:"more paths of the host that commands may read, at the same path; their folder bin joins PATH"`
}

// ControlGroups is how the kernel groups the processes of commands.
type ControlGroups struct {
	CgroupParent string `key:"cgroup-parent" help:"control group below which the commands' control groups are created (level full)"`
	FavorMoves   bool   `key:"cgroup-favor-moves" help:"let the kernel move processes between control groups at once, for commands with limits of their own or in parallel; a setting of the whole machine (mount option favordynmods, Linux 6.0) that makes each fork and exit slightly slower (level full)"`
}

// Users are the host's users that own workspaces.
type Users struct {
	UIDBase  int `key:"uid-base" help:"first host user id for workspaces, when running as root"`
	UIDCount int `key:"uid-count" help:"number of host user ids for workspaces (level full)"`
}

// HostFiles are what commands have of the host besides their workspace: folders and variables.
type HostFiles struct {
	Mounts    []mount.Rule     `key:"mounts" help:"folders of the host that commands see: name, source, mode (ro or rw), alias below the workspace (below mnt unless it is for all users), original (also at the same path), for (tenant/user or tenant/*; none means all users), on-request (only for agents and sessions that name it)"`
	Workflows string           `key:"workflows" help:"folder of the host that commands see as workflows, read-only; {tenant} in it is replaced by the tenant; empty shows the workspace's own"`
	Storage   Storage          `key:"storage"`
	Env       []mount.Variable `key:"env" help:"variables of commands: name, value or file, for (tenant/user or tenant/*; none means all users)"`
}

// OCI is the configuration of the driver `oci`.
type OCI struct {
	Runtime string `key:"runtime" help:"path or name of the OCI runtime; empty searches PATH for runc, crun and runsc"`
	State   string `key:"state" help:"folder for the files of running containers, best in memory; each service has its own folder in it"`
}

// Repositories defines which remote Git repositories sessions may use.
type Repositories struct {
	Remotes []repository.Remote `key:"remotes" help:"remotes that sessions may clone: host, ports (443), paths (globs; none: all), credential (of egress.credentials), push (allows pushing), addresses (ranges of private addresses that the host may have); none means no remote"`
	Timeout time.Duration       `key:"timeout" help:"how long a clone or a push may take"`
}

// Validate reports all faults except those of remotes, which New reports.
func (r Repositories) Validate() error {
	if r.Timeout < time.Second {
		return fmt.Errorf("timeout: %v is less than a second", r.Timeout)
	}
	return nil
}

// Disk is how much must stay free where the node writes.
type Disk struct {
	FreeBytes  int64 `key:"free-bytes" help:"free space below which new workspaces, commands and files are refused and running commands are killed, in bytes; 0 for no limit"`
	FreeInodes int64 `key:"free-inodes" help:"free inodes below which the same applies; 0 for no limit"`
}

// Validate reports all faults.
func (d Disk) Validate() error {
	var faults []error
	if d.FreeBytes < 0 {
		faults = append(faults, fmt.Errorf("free-bytes: %d is negative", d.FreeBytes))
	}
	if d.FreeInodes < 0 {
		faults = append(faults, fmt.Errorf("free-inodes: %d is negative", d.FreeInodes))
	}
	return errors.Join(faults...)
}

// Storage is the folder of each user that outlives sessions.
type Storage struct {
	Alias  string `key:"alias" help:"where commands find their user's persistent folder, such as storage; empty gives users none"`
	Bytes  int64  `key:"bytes" help:"size of one user's folder, in bytes on disk"`
	Inodes int64  `key:"inodes" help:"files and directories in one user's folder"`
}

// Validate reports all faults.
func (s Storage) Validate() error {
	if s.Alias == "" {
		return nil
	}
	var faults []error
	if s.Bytes < 4096 {
		faults = append(faults, fmt.Errorf("bytes: %d is less than 4096", s.Bytes))
	}
	if s.Inodes < 1 {
		faults = append(faults, fmt.Errorf("inodes: %d is less than 1", s.Inodes))
	}
	return errors.Join(faults...)
}

// mounts checks what commands see of the host.
func (c Config) mounts(data string, o box.Owners, left *erase.Later, unmapped bool) (*mount.Set, error) {
	private := []string{data}
	if at := c.ObjectStore.folder(); at != "" {
		private = append(private, at)
	}
	return mount.New(mount.Options{
		Rules: c.Mounts, Variables: c.Env, Workflows: c.Workflows, Private: private, Owners: o, Leftovers: left, Hidden: c.Driver == DriverNone, Covers: filepath.Join(data, ".points"), Common: c.ReadOnlyPaths, Unmapped: unmapped,
		Storage: mount.Storage{Dir: filepath.Join(data, ".storage"), Alias: c.Storage.Alias, Bytes: c.Storage.Bytes, Inodes: c.Storage.Inodes},
	})
}

// Limits are the limits of commands, and the operator's ceilings for requested ones.
type Limits struct {
	Memory          int64         `key:"memory" help:"memory of a workspace's commands together, in bytes; at level basic of each process"`
	Processes       int64         `key:"processes" help:"processes and threads of a workspace's commands together"`
	CPUs            float64       `key:"cpus" help:"processors' worth of time for a workspace's commands together (level full)"`
	FileSize        int64         `key:"file-size" help:"size of one file that a command writes, in bytes"`
	OpenFiles       int64         `key:"open-files" help:"open files of one process"`
	Output          int64         `key:"output" help:"output of a command that is kept, in bytes"`
	Flood           int64         `key:"flood" help:"output, kept or not, after which a command is killed, in bytes"`
	Tmp             int64         `key:"tmp" help:"size of a sandbox's /tmp, in bytes; at most half of its memory"`
	Shm             int64         `key:"shm" help:"size of a sandbox's /dev/shm, in bytes; at most an eighth of its memory"`
	WorkspaceBytes  int64         `key:"workspace-bytes" help:"size of a workspace with its home directory, in bytes on disk"`
	WorkspaceInodes int64         `key:"workspace-inodes" help:"files and directories in a workspace with its home directory"`
	Timeout         time.Duration `key:"timeout" help:"how long a command may run when it sets no timeout"`
	MaxTimeout      time.Duration `key:"max-timeout" help:"the longest timeout that a command may set"`
	Execs           int           `key:"execs" help:"the most commands on this node at the same time; the last quarter is reserved for sessions below their fair share (counted as if one more session ran commands), the last eighth for sessions with fewer than two commands"`
	SessionExecs    int           `key:"session-execs" help:"the most commands of one session at the same time"`
	KeepResults     int           `key:"keep-results" help:"results of commands kept per session until they are acknowledged"`
	Snapshots       int           `key:"snapshots" help:"the most snapshots of a session"`
	SnapshotBytes   int64         `key:"snapshot-bytes" help:"size on disk of a session's snapshots above which new ones are refused, in bytes"`
	KeepFor         time.Duration `key:"keep-for" help:"how long unacknowledged results are kept, and how long an acknowledgement is remembered"`
}

// Exports reports whether workspaces are copied to an object store.
func (c Config) Exports() bool { return c.ObjectStore.URL != "" }

// ObjectStore is where snapshots are copied to, so that a workspace can be restored on another node.
type ObjectStore struct {
	URL       string        `key:"url" help:"file:///folder, or s3://bucket/prefix?endpoint=https://host:port&region=name; empty copies nothing"`
	AccessKey config.Secret `key:"access-key" help:"access key for the bucket; empty takes the usual AWS environment variables and files"`
	SecretKey config.Secret `key:"secret-key" help:"secret key for the bucket"`
}

// Validate reports all faults.
func (o ObjectStore) Validate() error {
	if o.URL == "" {
		return nil
	}
	switch {
	case o.AccessKey == "" && o.SecretKey != "":
		return errors.New("access-key: is missing; it goes with secret-key")
	case o.AccessKey != "" && o.SecretKey == "":
		return errors.New("secret-key: is missing; it goes with access-key")
	}
	return nil
}

// folder returns the local folder of the store; empty if it is elsewhere.
func (o ObjectStore) folder() string {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return u.Path
}

// open opens the store; nil if there is none.
func (o ObjectStore) open() (objectstore.Store, error) {
	if o.URL == "" {
		return nil, nil //nolint:nilnil // no store is a valid configuration
	}
	return objectstore.Open(o.URL, objectstore.Credentials{AccessKey: string(o.AccessKey), SecretKey: string(o.SecretKey)})
}

// Defaults returns the defaults of all keys.
func Defaults() Config {
	return Config{
		Data: "data/sandbox", WorkspaceQuota: QuotaAuto,
		Isolation:     Isolation{Level: LevelAuto, Driver: DriverBubblewrap, OCI: OCI{State: "/run/fairlead"}},
		Sandboxes:     Sandboxes{IdleTimeout: 5 * time.Minute, MaxSandboxes: 1000, SpareSandboxes: 2},
		ControlGroups: ControlGroups{CgroupParent: "fairlead"},
		Users:         Users{UIDBase: 200_000, UIDCount: 50_000},
		Limits: Limits{
			Memory: 4 << 30, Processes: 512, CPUs: 2, FileSize: 1 << 30, OpenFiles: 4096,
			Output: 16 << 20, Flood: 1 << 30, Tmp: 512 << 20, Shm: 64 << 20,
			WorkspaceBytes: 4 << 30, WorkspaceInodes: 500_000,
			Timeout: 2 * time.Minute, MaxTimeout: 24 * time.Hour,
			Execs: 64, SessionExecs: 16, KeepResults: 1000, Snapshots: 1000, SnapshotBytes: 16 << 30, KeepFor: 48 * time.Hour,
		},
		Egress:       Egress{Connections: 128, Requests: 10_000, Idle: 10 * time.Minute, Total: 6 * time.Hour, Bytes: 8 << 30},
		HostFiles:    HostFiles{Storage: Storage{Bytes: 1 << 30, Inodes: 100_000}},
		Repositories: Repositories{Timeout: 30 * time.Minute},
		Disk:         Disk{FreeBytes: 512 << 20, FreeInodes: 10_000},
		Trees:        Trees{Bytes: 1 << 30, Count: 1000, Keep: 24 * time.Hour, TreeBytes: 64 << 20, TreeFiles: 2000},
	}
}

// Validate reports all faults.
func (c Config) Validate() error {
	var faults []error
	if c.Data == "" {
		faults = append(faults, errors.New("data: must name a directory"))
	}
	faults = append(faults, c.validateDriver())
	switch c.Level {
	case LevelFull, LevelBasic, LevelAuto:
	default:
		faults = append(faults, fmt.Errorf("level: %q is not one of full, basic, auto", c.Level))
	}
	switch c.WorkspaceQuota {
	case QuotaAuto, QuotaProject, QuotaCounted:
	default:
		faults = append(faults, fmt.Errorf("workspace-quota: %q is not one of project, counted, auto", c.WorkspaceQuota))
	}
	if c.CgroupParent == "" {
		faults = append(faults, errors.New("cgroup-parent: must name a control group"))
	}
	if c.IdleTimeout < time.Second {
		faults = append(faults, fmt.Errorf("idle-timeout: %v is less than a second", c.IdleTimeout))
	}
	if c.SpareSandboxes < 0 || c.SpareSandboxes > 100 {
		faults = append(faults, fmt.Errorf("spare-sandboxes: %d is not between 0 and 100", c.SpareSandboxes))
	}
	if c.MaxSandboxes < 1 {
		faults = append(faults, fmt.Errorf("max-sandboxes: %d is less than 1", c.MaxSandboxes))
	}
	if c.UIDBase < 1000 || c.UIDCount < 1 || c.UIDBase+c.UIDCount > 1<<31 {
		faults = append(faults, errors.New("uid-base, uid-count: must be a range of ids from 1000 on, of at least one"))
	}
	return errors.Join(faults...)
}

func (c Config) validateDriver() error {
	switch {
	case c.Driver == DriverNone && !c.NoIsolation:
		return errors.New("driver: `none` isolates nothing, commands of agents would run as the service's own user: choose another driver, " +
			"or, on a machine where that does not matter, set `allow-no-isolation: true` as well")
	case c.Driver == DriverNone && c.Level != LevelAuto:
		return fmt.Errorf("level: the driver `none` cannot apply the level %q: leave it out", c.Level)
	case c.Driver != DriverNone && c.NoIsolation:
		return fmt.Errorf("allow-no-isolation: the driver is %q and does not need it: remove the key, so that a later change of the driver cannot turn off isolation", c.Driver)
	}
	switch c.Driver {
	case DriverBubblewrap, DriverNone, "":
		return nil
	case driverKubernetes:
		return errors.New("driver: `kubernetes` is a program of its own: run `sandbox-kubernetes` as the sandbox service, which takes the keys `kubernetes.*` and no key `driver`")
	case DriverOCI:
		if !filepath.IsAbs(c.OCI.State) {
			return fmt.Errorf("oci.state: %q must be an absolute path", c.OCI.State)
		}
		return nil
	}
	return fmt.Errorf("driver: %q is not one of bubblewrap, oci, none", c.Driver)
}

// Validate reports all faults.
func (l Limits) Validate() error {
	var faults []error
	for _, x := range []struct {
		name  string
		value int64
		least int64
	}{
		{"memory", l.Memory, 16 << 20}, {"processes", l.Processes, 4}, {"file-size", l.FileSize, 4096}, {"open-files", l.OpenFiles, 16},
		{"output", l.Output, 1}, {"flood", l.Flood, l.Output}, {"tmp", l.Tmp, 4096}, {"shm", l.Shm, 4096},
		{"workspace-bytes", l.WorkspaceBytes, 64 << 10}, {"workspace-inodes", l.WorkspaceInodes, 16},
		{"timeout", int64(l.Timeout), int64(time.Millisecond)}, {"max-timeout", int64(l.MaxTimeout), int64(l.Timeout)},
		{"execs", int64(l.Execs), 1}, {"session-execs", int64(l.SessionExecs), 1},
		{"keep-results", int64(l.KeepResults), 1}, {"snapshots", int64(l.Snapshots), 1}, {"snapshot-bytes", l.SnapshotBytes, 4096}, {"keep-for", int64(l.KeepFor), int64(time.Minute)},
	} {
		if x.value < x.least {
			faults = append(faults, fmt.Errorf("%s: %d is less than %d", x.name, x.value, x.least))
		}
	}
	if l.CPUs < 0.01 {
		faults = append(faults, fmt.Errorf("cpus: %g is less than 0.01", l.CPUs))
	}
	return errors.Join(faults...)
}

func (l Limits) box() box.Limits {
	return box.Limits{
		MemoryBytes: l.Memory, Processes: l.Processes, CPUs: l.CPUs, FileBytes: l.FileSize, OpenFiles: l.OpenFiles,
		OutputBytes: l.Output, FloodBytes: l.Flood, TmpBytes: l.Tmp, ShmBytes: l.Shm,
		WorkspaceBytes: l.WorkspaceBytes, WorkspaceInodes: l.WorkspaceInodes, Timeout: l.Timeout, MaxTimeout: l.MaxTimeout,
	}.BoundScratch()
}

// level returns the chosen level, and why.
func (c Config) level(d Driver) (level, why string) {
	switch {
	case d.New != nil:
		return d.Level, "set by the driver"
	case c.Driver == DriverNone:
		return LevelNone, "the driver none has no isolation"
	case c.Level != LevelAuto:
		return c.Level, "configured"
	case os.Getuid() == 0:
		return LevelFull, "auto: running as root"
	}
	return LevelBasic, "auto: not running as root"
}
