package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// controllers2 are the version 2 controllers that limits need.
var controllers2 = []string{"memory", "pids", "cpu"}

type v2 struct{ dir, below, prefix string }

// openV2 makes the folder prefix below the service's place. self is the content of /proc/self/cgroup.
func openV2(root, self, prefix string) (*v2, error) {
	p := findPlace(root, self)
	if err := p.open(); err != nil {
		return nil, err
	}
	dir := p.dir
	for part := range strings.SplitSeq(prefix, "/") {
		dir = filepath.Join(dir, part)
		if err := errors.Join(makeGroup(dir), enable(dir)); err != nil {
			return nil, err
		}
	}
	return &v2{dir: dir, below: "/" + strings.Trim(strings.TrimPrefix(p.dir, root), "/"), prefix: prefix}, nil
}

// enable delegates the missing controllers to the groups below dir.
func enable(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read the control group controllers: %w", err)
	}
	handed, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the control group controllers: %w", err)
	}
	var missing []string
	for _, c := range controllers2 {
		if !slices.Contains(strings.Fields(string(raw)), c) {
			return fmt.Errorf("control group controller %q is not available in %s", c, dir)
		}
		if !slices.Contains(strings.Fields(string(handed)), c) {
			missing = append(missing, "+"+c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := write(dir, "cgroup.subtree_control", strings.Join(missing, " ")); err != nil {
		return fmt.Errorf("delegate controllers in the control group %s: %w", dir, err)
	}
	return nil
}

func (h *v2) Name() string  { return "cgroup-v2" }
func (h *v2) Below() string { return h.below }

func (h *v2) New(name string, l Limits) (Group, error) {
	g := &group2{dir: filepath.Join(h.dir, name)}
	g.main = filepath.Join(g.dir, "main")
	if err := makeGroup(g.dir); err != nil {
		return nil, err
	}
	if err := errors.Join(limit2(g.dir, l), enable(g.dir), makeGroup(g.main)); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

func makeGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make a control group: %w", err)
	}
	return nil
}

func (h *v2) Sweep() error { return sweep(h.dir) }
func (h *v2) Close() error { return removeFolder(h.dir, h.prefix) }

// group2 is a folder with the limits. Only groups without groups below may hold processes, so a sandbox's
// processes are in one named main.
type group2 struct {
	dir, main                string
	ooms, refused, throttled counter
	refusedMain              counter // before Linux 6.11 the kernel counts in the group of the forking process
}

// Limit implements Group.
func (g *group2) Limit(l Limits) error { return limit2(g.dir, l) }

func limit2(dir string, l Limits) error {
	settings := [][2]string{}
	if l.MemoryBytes > 0 {
		settings = append(settings, [2]string{"memory.max", strconv.FormatInt(l.MemoryBytes, 10)})
		if err := closeSwap(dir, "memory.swap.max", "0", swaps); err != nil {
			return err
		}
	}
	if l.Processes > 0 {
		settings = append(settings, [2]string{"pids.max", strconv.FormatInt(l.Processes, 10)})
	}
	if l.CPUs > 0 {
		settings = append(settings, [2]string{"cpu.max", fmt.Sprintf("%d %d", quota(l.CPUs), period)})
	}
	for _, s := range settings {
		if err := write(dir, s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

func (g *group2) Add(pid int) error {
	if err := write(g.main, "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("move process into its control group: %w", err)
	}
	return nil
}

func (g *group2) Below(name string, l Limits) (Group, error) {
	dir := filepath.Join(g.dir, name)
	below := &group2{dir: dir, main: dir}
	if err := makeGroup(dir); err != nil {
		return nil, err
	}
	// For want of memory the kernel kills one process, not the command, as in the sandbox's own group and
	// in version 1.
	if err := limit2(dir, l); err != nil {
		return nil, errors.Join(err, below.Remove())
	}
	return below, nil
}

func (g *group2) Usage() Usage {
	return Usage{
		CPU:            time.Duration(readKey(filepath.Join(g.dir, "cpu.stat"), "usage_usec")) * time.Microsecond,
		MaxMemoryBytes: readInt(filepath.Join(g.dir, "memory.peak")),
		OOMKills:       g.Counts().OOMKills,
	}
}

// Counts implements Group.
func (g *group2) Counts() Counts {
	c := Counts{
		OOMKills:  g.ooms.read(filepath.Join(g.main, "memory.events.local"), "oom_kill"),
		Refused:   g.refused.read(filepath.Join(g.dir, "pids.events"), "max"),
		Throttled: time.Duration(g.throttled.read(filepath.Join(g.dir, "cpu.stat"), "throttled_usec")) * time.Microsecond,
	}
	if g.main != g.dir {
		c.Refused += g.refusedMain.read(filepath.Join(g.main, "pids.events"), "max")
	}
	return c
}

func (g *group2) Pids() []int { return groupPids(g.main) }

func (g *group2) Freeze(ctx context.Context) error {
	if err := write(g.dir, "cgroup.freeze", "1"); err != nil {
		return err
	}
	return await(ctx, "freeze", func() bool { return readKey(filepath.Join(g.dir, "cgroup.events"), "frozen") == 1 })
}

func (g *group2) Thaw() error { return write(g.dir, "cgroup.freeze", "0") }
func (g *group2) Kill() error { return write(g.dir, "cgroup.kill", "1") }

func (g *group2) Remove() error {
	g.ooms.close()
	g.refused.close()
	g.refusedMain.close()
	g.throttled.close()
	return removeGroup(g.dir)
}
