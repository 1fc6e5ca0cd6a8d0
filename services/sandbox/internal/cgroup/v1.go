package cgroup

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// controllers1 are the version 1 controllers that limits need. cpuacct only
// counts, and is often the same mount as cpu.
var controllers1 = []string{"memory", "pids", "cpu", "cpuacct"}

type v1 struct {
	prefix string
	dirs   map[string]string // by controller
}

func openV1(root, prefix string) (*v1, error) {
	h := &v1{prefix: prefix, dirs: map[string]string{}}
	for _, c := range controllers1 {
		mount := filepath.Join(root, c)
		if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil {
			return nil, fmt.Errorf("control group controller %q is not mounted at %s: mount it, or choose the level `basic`", c, mount)
		}
		dir := filepath.Join(mount, prefix)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make a control group for %s: %w", c, err)
		}
		h.dirs[c] = dir
	}
	return h, nil
}

func (h *v1) Name() string { return "cgroup-v1" }

func (h *v1) New(name string, l Limits) (Group, error) {
	g := &group1{dirs: map[string]string{}}
	for c, dir := range h.dirs {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, errors.Join(fmt.Errorf("make a control group: %w", err), g.Remove())
		}
		g.dirs[c] = path
	}
	if err := g.limit(l); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

func (h *v1) Sweep() error {
	var faults []error
	for _, dir := range h.dirs {
		faults = append(faults, sweep(dir))
	}
	return errors.Join(faults...)
}

func (h *v1) Close() error {
	var faults []error
	for _, dir := range h.dirs {
		faults = append(faults, removeFolder(dir, h.prefix))
	}
	return errors.Join(faults...)
}

type group1 struct{ dirs map[string]string }

func (g *group1) limit(l Limits) error {
	if l.MemoryBytes > 0 {
		limit := strconv.FormatInt(l.MemoryBytes, 10)
		if err := write(g.dirs["memory"], "memory.limit_in_bytes", limit); err != nil {
			return err
		}
		// Memory and swap together: the file is there only where swap is accounted.
		const withSwap = "memory.memsw.limit_in_bytes"
		if _, err := os.Stat(filepath.Join(g.dirs["memory"], withSwap)); err == nil {
			if err := write(g.dirs["memory"], withSwap, limit); err != nil {
				return err
			}
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

// quota is the time per period, in microseconds; the kernel wants at least one
// millisecond.
func quota(cpus float64) int { return max(1000, int(math.Round(cpus*period))) }

func (g *group1) Add(pid int) error {
	for _, dir := range g.dirs {
		if err := write(dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("move process into its control group: %w", err)
		}
	}
	return nil
}

func (g *group1) Usage() Usage {
	memory := g.dirs["memory"]
	return Usage{
		CPU:            time.Duration(readInt(filepath.Join(g.dirs["cpuacct"], "cpuacct.usage"))),
		MaxMemoryBytes: readInt(filepath.Join(memory, "memory.max_usage_in_bytes")),
		OOMKills:       readKey(filepath.Join(memory, "memory.oom_control"), "oom_kill"),
	}
}

func (g *group1) Remove() error {
	var faults []error
	for _, dir := range g.dirs {
		faults = append(faults, removeGroup(dir))
	}
	return errors.Join(faults...)
}
