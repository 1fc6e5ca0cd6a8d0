package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
	"github.com/fairlead/fairlead/services/allinone/internal/freeport"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgserver"
)

// bench is the common state of the parts: a Postgres that syncs, a model
// server, and a directory on the measured disk.
type bench struct {
	out                                  io.Writer
	programs                             string
	turns, followers, sessions, messages int
	rate                                 float64

	dir      string
	postgres *pgserver.Server
	model    *fleet.Process
	modelURL string
}

func (b *bench) printf(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

// row prints a figure with its baseline.
func (b *bench) row(name, format string, args ...any) {
	b.printf("   %-44s %s\n", name, fmt.Sprintf(format, args...))
}

// goal prints whether a goal is met.
func (b *bench) goal(met bool, format string, args ...any) {
	b.printf("   %-4s %s\n", map[bool]string{true: "MET", false: "MISS"}[met], fmt.Sprintf(format, args...))
}

func (b *bench) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "fairlead-bench-"); err != nil {
		return err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // Postgres and sandboxes of other users pass through
		return err
	}
	if b.postgres, err = pgserver.StartDurable(ctx, filepath.Join(b.dir, "pg"), "shared_buffers=512MB", "max_wal_size=4GB"); err != nil {
		return err
	}
	address, err := freeport.Address()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.modelURL = "http://" + address
	b.model, err = fleet.Start(b.dir, "model", self, nil, "model", address)
	return err
}

func (b *bench) close() {
	if b.model != nil {
		b.model.Stop()
	}
	if b.postgres != nil {
		_ = b.postgres.Stop()
	}
	_ = os.RemoveAll(b.dir)
}

// database creates an empty database on the server and returns its URL.
func (b *bench) database(ctx context.Context) (_ string, err error) {
	conn, err := pgx.Connect(ctx, b.postgres.URL())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	name := "bench" + id.New()
	if _, err := conn.Exec(ctx, "create database "+name); err != nil {
		return "", err
	}
	return strings.Replace(b.postgres.URL(), "/postgres?", "/"+name+"?", 1), nil
}

// data returns a directory for a Fairlead's data.
func (b *bench) data() string { return filepath.Join(b.dir, id.New()) }

// shape returns an all-in-one Fairlead on SQLite, or on Postgres.
func (b *bench) shape(database string, four bool) fleet.Shape {
	return fleet.Shape{Programs: b.programs, Data: b.data(), Four: four, Database: database, Model: b.modelURL}
}

// storebench runs the store's own measurements and parses their output.
func (b *bench) storebench(ctx context.Context, result any, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.programs, "storebench"), args...) //nolint:gosec // it is ours
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("storebench %s: %w", args[0], err)
	}
	return json.Unmarshal(out, result)
}

// conditions prints the conditions of the measurements.
func (b *bench) conditions(ctx context.Context) {
	b.printf("conditions\n")
	b.row("machine", "%d CPUs, %s, load %s", runtime.NumCPU(), cpuModel(), load())
	b.row("programs", "%s, %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	conn, err := pgx.Connect(ctx, b.postgres.URL())
	if err != nil {
		b.row("Postgres", "%v", err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	var settings []string
	for _, s := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers", "max_wal_size"} {
		var v string
		if err := conn.QueryRow(ctx, "show "+s).Scan(&v); err == nil {
			settings = append(settings, s+"="+v)
		}
	}
	b.row("Postgres", "%s", strings.Join(settings, " "))
	if times, err := syncCost(b.dir, 300); err == nil {
		b.row("disk: append of 4 KiB and fdatasync", "%s", times)
	}
}

// syncCost measures synced appends of 4 KiB.
func syncCost(dir string, n int) (times stat.Times, err error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	for range n {
		begun := time.Now()
		if _, err := f.Write(page); err != nil {
			return nil, err
		}
		if err := fdatasync(f); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begun))
	}
	return times, nil
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.SplitSeq(string(text), "\n") {
		if _, name, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(line, "model name") {
			return strings.TrimSpace(name)
		}
	}
	return "CPU of an unknown model"
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:min(3, len(strings.Fields(string(text))))], " ")
}
