// Command storebench measures the session service's store, and fills it for
// measurements of whole servers. `make bench` runs it: it is a program of its own
// because the store is internal to the session service.
//
//	storebench commit     what one synced commit of one event takes
//	storebench throughput how many events a second a committer makes durable, against COPY
//	storebench messages   add messages to a session's conversation
//	storebench sessions   add copies of an existing session
//
// Each prints one JSON object.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

// options are the flags of all subcommands.
type options struct {
	database string // Postgres; empty: SQLite in data
	data     string
	session  string
	count    int
	sessions int
	events   int
	distinct bool
	duration time.Duration
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "storebench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, store.Store, options) (any, error){
		"commit": measureCommit, "throughput": measureThroughput, "messages": addMessages, "sessions": addSessions,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("usage: storebench commit|throughput|messages|sessions [flags]")
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	s, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	result, err := commands[args[0]](ctx, s, o)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.StringVar(&o.database, "database", "", "Postgres, as a URL; empty: SQLite")
	f.StringVar(&o.data, "data", "", "the directory of SQLite's session.db")
	f.StringVar(&o.session, "session", "", "messages, sessions: the session's id")
	f.IntVar(&o.count, "count", 200, "commit: how many; messages, sessions: how many to add")
	f.IntVar(&o.sessions, "sessions", 200, "throughput: how many sessions produce at once")
	f.IntVar(&o.events, "events", 0, "throughput: how many events a second each session produces; 0: as many as the log takes")
	f.BoolVar(&o.distinct, "distinct", false, "throughput: events that cannot be merged")
	f.DurationVar(&o.duration, "duration", 8*time.Second, "throughput: how long")
	return o, f.Parse(args[1:])
}

func open(ctx context.Context, o options) (store.Store, error) {
	log := slog.New(slog.DiscardHandler)
	if o.database != "" {
		return postgres.Open(ctx, o.database, log)
	}
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, filepath.Join(o.data, "session.db"), log)
}
