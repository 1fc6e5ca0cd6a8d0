// Command bench measures Fairlead as its users run it: real programs, real HTTP
// clients, a model server in a process of its own, every commit synced. Each
// figure comes with its baseline from the same run. docs/benchmarks.md says how
// to read them.
//
//	bench --programs bin              all parts
//	bench --programs bin --only list  one of them
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
)

// part is one measurement.
type part struct {
	name, about string
	run         func(context.Context, *bench) error
}

var parts = []part{
	{"first-token", "time added between a model server and an SSE client", measureTokens},
	{"turn", "one plain turn, a turn of ten commands, 50 turns at once", measureTurn},
	{"events", "durable events a second against COPY", measureEvents},
	{"streams", "turns that stream at once, and what they cost", measureStreams},
	{"long", "the first model call of a session with 10,000 messages", measureLong},
	{"sandbox", "commands in warm sandboxes against plain ones; the making of sandboxes", measureSandbox},
	{"list", "a page of a tenant's 1,000,000 sessions", measureList},
	{"auth", "a unary call with an API key against one of an open server", measureAuth},
	{"tools", "decisions on a shell command of five parts", measureTools},
	{"proxy", "streams through the model proxy against the model server itself", measureProxy},
	{"runtimes", "turns of the native runtime against those of the Claude Code CLI", measureRuntimes},
	{"wires", "events over each protocol of the gateway against our own server-sent events", measureWires},
	{"followers", "10,000 clients that wait, on each protocol; 1,000 clients of one busy session", measureFollowers},
	{"snapshots", "a workspace of 10,000 files of which 20 change", measureSnapshots},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "model" {
		server := &http.Server{Addr: args[1], Handler: provider.Handler(), ReadHeaderTimeout: 10 * time.Second}
		return server.ListenAndServe()
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	b := &bench{out: os.Stdout}
	f.StringVar(&b.programs, "programs", "bin", "the directory of the built programs")
	f.IntVar(&b.turns, "turns", 1000, "streams: how many turns stream at once")
	f.Float64Var(&b.rate, "rate", 0, "streams: the only tokens a second of a turn; 0: from 50 down to what meets the goal")
	f.IntVar(&b.followers, "followers", 10_000, "followers: how many idle ones")
	f.IntVar(&b.sessions, "sessions", 1_000_000, "list: how many sessions the tenant has")
	f.IntVar(&b.messages, "messages", 10_000, "long: how many messages the session has")
	only := f.String("only", "", "parts to run, separated by commas; empty: all")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	defer b.close()
	b.conditions(ctx)
	for _, p := range chosen {
		begun := time.Now()
		b.printf("\n== %s: %s\n", p.name, p.about)
		if err := p.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		b.printf("   (took %s)\n", time.Since(begun).Round(time.Second))
	}
	return nil
}

func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q", name)
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}
