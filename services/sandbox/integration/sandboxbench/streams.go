package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox/internal/sampletree"
)

// outputBytes is how much a command writes, firstBytes what one before it does: memory that
// output of any size takes is taken then.
const (
	outputBytes = 1 << 30
	firstBytes  = 64 << 20
)

// streams follows a command that writes much, and searches a large workspace, beside
// ripgrep, both through gRPC.
func (b *bench) streams(ctx context.Context) (err error) {
	r, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return errors.Join(b.output(ctx, r), b.search(ctx, r), b.among(ctx, r))
}

// among runs commands in the workspace that search has filled.
func (b *bench) among(ctx context.Context, r *remote) error {
	took, err := b.compare(
		kind{"plain fork and exec from Go", func() error { return exec.CommandContext(ctx, "/bin/true").Run() }},
		kind{"… through gRPC Exec, among 10,000 files", func() error { return r.truth(ctx) }},
	)
	if err != nil {
		return err
	}
	goal(took[1] <= 2, "through gRPC, among 10,000 files: %.2f times plain; goal: 2, as in an empty workspace", took[1])
	return nil
}

func (b *bench) search(ctx context.Context, r *remote) error {
	if _, err := exec.LookPath("rg"); err != nil {
		return errors.New("searching is measured beside ripgrep: install it (Debian: apt-get install ripgrep)")
	}
	if err := sampletree.Fill(r.workspace); err != nil {
		return err
	}
	worst := 0.0
	for _, q := range []struct {
		name, pattern string
		ignoreCase    bool
	}{
		{"a text", `name4999\(value89`, false},
		{"an expression", `name49\d\d\(value8\d int`, false},
		{"a text in either case", `NAME4999\(VALUE89`, true},
		{"what is nowhere", `nothing of the kind`, false},
	} {
		var ours, theirs times
		for range 12 {
			begun := time.Now()
			n, err := r.grep(ctx, q.pattern, q.ignoreCase)
			if err != nil {
				return err
			}
			ours = append(ours, time.Since(begun))
			begun = time.Now()
			other, err := ripgrep(ctx, r.workspace, q.pattern, q.ignoreCase)
			if err != nil {
				return err
			}
			theirs = append(theirs, time.Since(begun))
			if n != other {
				return fmt.Errorf("%s: %d lines, ripgrep %d", q.pattern, n, other)
			}
		}
		ratio := float64(ours.at(0.5)) / float64(theirs.at(0.5))
		worst = max(worst, ratio)
		row("ripgrep for "+q.name, "%s", theirs)
		row("… Grep", "%s, %.2f times ripgrep", ours, ratio)
	}
	goal(worst <= 1.5, "Grep in 10,000 files and 440 MB: at most %.2f times ripgrep; goal: 1.5", worst)
	return nil
}

// grep counts the lines that match.
func (r *remote) grep(ctx context.Context, pattern string, ignoreCase bool) (lines int, err error) {
	stream, err := r.files.GrepFiles(ctx, &sandboxv1.GrepFilesRequest{Session: "sessions/one", Pattern: pattern, IgnoreCase: ignoreCase, MaxLines: 100_000})
	if err != nil {
		return 0, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return 0, err
		}
		lines += len(m.GetMatches())
	}
}

func ripgrep(ctx context.Context, dir, pattern string, ignoreCase bool) (lines int, err error) {
	args := []string{"--no-ignore", "--hidden", "--line-number", "-e", pattern, dir}
	if ignoreCase {
		args = append([]string{"--ignore-case"}, args...)
	}
	out, err := exec.CommandContext(ctx, "rg", args...).Output() //nolint:gosec // the patterns are ours
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil // it found nothing
	}
	return bytes.Count(out, []byte{'\n'}), err
}

// writes is a program that writes so many bytes.
func writes(bytes int) []string { return []string{"head", "-c", strconv.Itoa(bytes), "/dev/zero"} }

// pipe reads the same from a plain pipe and throws it away.
func pipe(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	argv := writes(outputBytes)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // ours
	var got counter
	cmd.Stdout = &got
	err := cmd.Run()
	if err == nil && got != outputBytes {
		err = fmt.Errorf("%d bytes came through a plain pipe, not %d", got, outputBytes)
	}
	return time.Since(begun), err
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// output follows a command that writes 1 GiB, and looks at what that takes.
func (b *bench) output(ctx context.Context, r *remote) error {
	plain, err := pipe(ctx)
	if err != nil {
		return err
	}
	if _, err := r.follow(ctx, firstBytes); err != nil {
		return err
	}
	before, err := resident("VmRSS:")
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil { // the peak begins anew
		return err
	}
	took, err := r.follow(ctx, outputBytes)
	if err != nil {
		return err
	}
	peak, err := resident("VmHWM:")
	if err != nil {
		return err
	}
	rate := outputBytes / 1e6 / took.Seconds()
	grown := float64(peak-before) / (1 << 20)
	row("1 GiB of output through a plain pipe", "%s, %.0f MB/s", milliseconds(plain), outputBytes/1e6/plain.Seconds())
	row("… through gRPC Exec, kept", "%s, %.2f times the pipe, %.0f MB/s; memory grew by %.0f MiB", milliseconds(took), float64(took)/float64(plain), rate, grown)
	goal(rate > 500 && grown < 64, "%.0f MB/s of output, %.0f MiB more memory; goal: 500, and no growth to speak of (64)", rate, grown)
	return nil
}

// follow runs a command that writes so many bytes, and receives them.
func (r *remote) follow(ctx context.Context, bytes int) (took time.Duration, err error) {
	stream, err := r.execs.Exec(ctx)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	start := &sandboxv1.ExecStart{Call: r.call(), Argv: writes(bytes)}
	if err := stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: start}}); err != nil {
		return 0, err
	}
	got := 0
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		got += len(m.GetStdout().GetData())
		if e := m.GetExited(); e != nil && e.GetReason() != sandboxv1.ExitReason_EXIT_REASON_EXITED {
			return 0, fmt.Errorf("the command that writes much: %v", e)
		}
	}
	if got != bytes {
		return 0, fmt.Errorf("%d bytes of output came, not %d", got, bytes)
	}
	return time.Since(begun), nil
}

// resident reads a line of the process's status, in bytes.
func resident(key string) (int64, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not tell %s", key)
}
