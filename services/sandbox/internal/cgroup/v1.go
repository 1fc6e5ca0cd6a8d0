package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// controllers1 are the required version 1 controllers, in the order in which groups are joined. cpuacct
// only counts; freezer only freezes.
var controllers1 = []string{"memory", "pids", "cpu", "cpuacct", "freezer"}

// below1 are the controllers in which a command has a group below its sandbox's.
var below1 = []string{"memory", "pids"}

type v1 struct {
	prefix string
	dirs   map[string]string // by controller; those mounted together once
}

func openV1(root, prefix string) (*v1, error) {
	h := &v1{prefix: prefix, dirs: map[string]string{}}
	seen := map[[2]uint64]bool{}
	for _, c := range controllers1 {
		mount := filepath.Join(root, c)
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(mount, "cgroup.procs"), &st); err != nil {
			return nil, fmt.Errorf("control group controller %q is not mounted at %s", c, mount)
		}
		id := [2]uint64{uint64(st.Dev), st.Ino} //nolint:unconvert // the type is the architecture's
		dir := filepath.Join(mount, prefix)
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the prefix is the operator's
			return nil, fmt.Errorf("make a control group for %s: %w", c, err)
		}
		if c == "cpuacct" && seen[id] {
			continue // mounted together with cpu
		}
		seen[id] = true
		h.dirs[c] = dir
	}
	return h, nil
}

func (h *v1) Name() string  { return "cgroup-v1" }
func (h *v1) Below() string { return "/" }

func (h *v1) New(name string, l Limits) (Group, error) {
	return new1(h.dirs, controllers1, name, l)
}

// new1 makes a group below others.
func new1(above map[string]string, controllers []string, name string, l Limits) (Group, error) {
	g := &group1{dirs: map[string]string{}}
	for _, c := range controllers {
		if above[c] == "" {
			continue
		}
		path := filepath.Join(above[c], name)
		if err := unix.Mkdir(path, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, errors.Join(fmt.Errorf("make a control group for %s: %w", c, err), g.Remove())
		}
		g.dirs[c] = path
	}
	if err := g.Limit(l); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// Sweep thaws first: a frozen process does not die, and an earlier service may have died while its
// sandboxes were frozen.
func (h *v1) Sweep() error {
	faults := []error{thawBelow(h.dirs["freezer"])}
	for _, dir := range h.dirs {
		faults = append(faults, sweep(dir))
	}
	return errors.Join(faults...)
}

// thawBelow thaws all groups in a folder.
func thawBelow(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list control groups: %w", err)
	}
	var faults []error
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := thaw(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func thaw(dir string) error { return write(dir, "freezer.state", "THAWED") }

func (h *v1) Close() error {
	var faults []error
	for _, dir := range h.dirs {
		faults = append(faults, removeFolder(dir, h.prefix))
	}
	return errors.Join(faults...)
}

type group1 struct {
	dirs                     map[string]string
	ooms, refused, throttled counter
}

// Limit implements Group.
func (g *group1) Limit(l Limits) error {
	if l.MemoryBytes > 0 {
		limit := strconv.FormatInt(l.MemoryBytes, 10)
		if err := write(g.dirs["memory"], "memory.limit_in_bytes", limit); err != nil {
			return err
		}
		// Memory and swap together.
		if err := closeSwap(g.dirs["memory"], "memory.memsw.limit_in_bytes", limit, swaps); err != nil {
			return err
		}
		if err := g.limitSockets(l.MemoryBytes); err != nil {
			return err
		}
	}
	if l.Processes > 0 {
		if err := write(g.dirs["pids"], "pids.max", strconv.FormatInt(l.Processes, 10)); err != nil {
			return err
		}
	}
	if l.CPUs > 0 {
		if err := write(g.dirs["cpu"], "cpu.cfs_period_us", strconv.Itoa(period)); err != nil {
			return err
		}
		return write(g.dirs["cpu"], "cpu.cfs_quota_us", strconv.Itoa(quota(l.CPUs)))
	}
	return nil
}

// socketBytes limits the buffers of a group's TCP and UDP sockets. The whole machine has a fixed number of
// pages for these, and version 1 does not count them as memory of the group.
const socketBytes = 64 << 20

func (g *group1) limitSockets(memory int64) error {
	const file = "memory.kmem.tcp.limit_in_bytes"
	if errors.Is(unix.Access(filepath.Join(g.dirs["memory"], file), unix.F_OK), unix.ENOENT) {
		return nil // a kernel that does not count them
	}
	return write(g.dirs["memory"], file, strconv.FormatInt(min(memory/2, socketBytes), 10))
}

// quota returns the time per period, in microseconds; the kernel requires at least one millisecond.
func quota(cpus float64) int { return max(1000, int(math.Round(cpus*period))) }

func (g *group1) Add(pid int) error {
	for _, c := range controllers1 {
		if g.dirs[c] == "" {
			continue
		}
		if err := write(g.dirs[c], "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("move process into its control group: %w", err)
		}
	}
	return nil
}

func (g *group1) Below(name string, l Limits) (Group, error) {
	controllers := below1
	if l.CPUs > 0 { // otherwise the sandbox's share is shared
		controllers = append([]string{"cpu"}, below1...)
	}
	return new1(g.dirs, controllers, name, l)
}

func (g *group1) Usage() Usage {
	memory := g.dirs["memory"]
	return Usage{
		CPU:            time.Duration(readInt(filepath.Join(g.dirs["cpuacct"], "cpuacct.usage"))),
		MaxMemoryBytes: readInt(filepath.Join(memory, "memory.max_usage_in_bytes")),
		OOMKills:       g.Counts().OOMKills,
	}
}

// Counts implements Group. A command's group has a processor counter only if it has a limit for processors.
func (g *group1) Counts() Counts {
	c := Counts{
		OOMKills: g.ooms.read(filepath.Join(g.dirs["memory"], "memory.oom_control"), "oom_kill"),
		Refused:  g.refused.read(filepath.Join(g.dirs["pids"], "pids.events"), "max"),
	}
	if g.dirs["cpu"] != "" {
		c.Throttled = time.Duration(g.throttled.read(filepath.Join(g.dirs["cpu"], "cpu.stat"), "throttled_time"))
	}
	return c
}

func (g *group1) Pids() []int { return groupPids(g.dirs["pids"]) }

// Freeze polls until all have stopped: a group that is still freezing reports that.
func (g *group1) Freeze(ctx context.Context) error {
	dir := g.dirs["freezer"]
	if err := write(dir, "freezer.state", "FROZEN"); err != nil {
		return err
	}
	return await(ctx, "freeze", func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
		if strings.TrimSpace(string(raw)) == "FREEZING" {
			_ = write(dir, "freezer.state", "FROZEN") // some processes react only to the second write
		}
		return err == nil && strings.TrimSpace(string(raw)) == "FROZEN"
	})
}

func (g *group1) Thaw() error { return thaw(g.dirs["freezer"]) }

func (g *group1) Kill() error {
	// No process can fork any more, so one pass finds all.
	if err := write(g.dirs["pids"], "pids.max", "0"); err != nil {
		return err
	}
	for _, pid := range g.Pids() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return nil
}

func (g *group1) Remove() error {
	g.ooms.close()
	g.refused.close()
	g.throttled.close()
	if dir := g.dirs["freezer"]; dir != "" {
		_ = thaw(dir) // a frozen process does not die; removing the group reports errors
	}
	var faults []error
	for _, dir := range g.dirs {
		faults = append(faults, removeGroup(dir))
	}
	return errors.Join(faults...)
}
