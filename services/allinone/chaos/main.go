// Command chaos proves that turns survive: it runs Fairlead as it runs in production, with many turns under way, kills
// and stops its programs, restarts the database and cuts connections at random, and then checks from what clients
// received, from the log and from the workspaces that nothing was lost, nothing was done twice, and every turn ended as
// its script says.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := program(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// program runs once and returns the exit code: 1 for a violation, 2 when the run could not be
// judged.
func program(ctx context.Context, args []string) int {
	var o options
	var only string
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the script, the clients and the faults")
	flags.IntVar(&o.kills, "kills", 200, "how often a program is killed")
	flags.IntVar(&o.sessions, "sessions", 16, "sessions with turns at the same time")
	flags.DurationVar(&o.interval, "interval", 600*time.Millisecond, "time between faults, on average")
	flags.DurationVar(&o.lease, "lease-ttl", 3*time.Second, "how long a silent replica keeps its sessions")
	flags.DurationVar(&o.settle, "settle", 90*time.Second, "how long turns may take to end after the last fault")
	flags.BoolVar(&o.race, "race", false, "build the programs with the race detector")
	flags.StringVar(&only, "only", "", "services that faults hit, separated by commas; all when empty")
	duration := flags.Duration("duration", time.Hour, "end the faults after this time, even with fewer kills")
	quiet := flags.Bool("quiet", false, "show the summary alone")
	keep := flags.Bool("keep", false, "keep data, logs and recordings")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	begin := time.Now()
	o.log = func(format string, args ...any) {
		if !*quiet {
			fmt.Printf("%7.2fs  "+format+"\n", append([]any{time.Since(begin).Seconds()}, args...)...)
		}
	}
	o.duration = *duration
	return judge(ctx, o, *keep)
}

// judge runs the test and shows the result.
func judge(ctx context.Context, o options, keep bool) int {
	dir, err := os.MkdirTemp("", "fairlead-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	o.dir = dir
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // users of sandboxes pass through it
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	run, rep, err := run(ctx, o)
	if run != nil {
		summarize(os.Stdout, run, rep)
		fmt.Print(violations(rep, 40))
	}
	code := 0
	switch {
	case len(rep.Violations) > 0:
		code = 1
	case err != nil:
		code = 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if code == 0 && !keep {
		_ = os.RemoveAll(dir)
		return code
	}
	if run != nil {
		if err := run.Save(dir + "/recording.json"); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		}
	}
	fmt.Printf("data, logs and recordings are kept in %s\n", dir)
	return code
}
