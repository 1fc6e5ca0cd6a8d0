// Program path prints how much code a turn runs: functions, files and packages of ours. `make path` builds it with
// coverage counters, which it clears before the turn.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/coverage"
	"strings"
	"time"

	fairlead "github.com/fairlead/fairlead/clients/go"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/host"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

const scenario = `name: path
turns:
  - when: ^word
    steps: [{text: hello}]
  - when: ^command
    steps:
      - tools: [{name: Bash, input: {command: echo hello}}]
      - text: done
`

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fairlead-path-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	conf := host.Defaults(dir)
	conf.HTTP, conf.GRPC, conf.Ops = "", "127.0.0.1:0", ""
	models := &conf.Session.Models
	models.Scenario, models.Model = filepath.Join(dir, "scenario.yaml"), "scripted:path"
	if err := os.WriteFile(models.Scenario, []byte(scenario), 0o600); err != nil {
		return err
	}
	h, err := host.New(ctx, conf, telemetry.Discard(slog.New(slog.DiscardHandler)), "path")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- h.Run(ctx, func(_, at string) { address <- at }) }()
	err = measure(ctx, <-address, dir)
	stop()
	return errors.Join(err, <-ended)
}

// measure prints the rows.
func measure(ctx context.Context, address, dir string) error {
	c, err := fairlead.Connect(address, fairlead.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	made, err := c.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "agents/coder"}})
	if err != nil {
		return err
	}
	fmt.Println("| a turn | functions | files | packages |\n| --- | --- | --- | --- |")
	for _, row := range []struct{ name, text string }{{"of one word", "word"}, {"with one command", "command"}} {
		turn := func() error {
			end, err := c.Run(ctx, &sessionv1.RunTurnRequest{Parent: made.GetName(), Text: row.text}, fairlead.Handlers{})
			if err == nil && end.GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE {
				err = fmt.Errorf("the turn %s ended %s: %s", row.name, end.GetState(), end.GetError().GetMessage())
			}
			return err
		}
		if err := turn(); err != nil { // what happens once in a session is no part of a turn
			return err
		}
		time.Sleep(rest) //nolint:forbidigo // what follows a turn is no part of the next one, and nothing tells of its end
		if err := coverage.ClearCounters(); err != nil {
			return fmt.Errorf("the counters: %w; build with -cover -covermode=atomic, as `make path` does", err)
		}
		if err := turn(); err != nil {
			return err
		}
		if err := count(ctx, row.name, filepath.Join(dir, row.text)); err != nil {
			return err
		}
	}
	return nil
}

// rest is how long the work behind a turn takes at the most.
const rest = 2 * time.Second

// count prints what has run since the counters were cleared.
func count(ctx context.Context, name, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir)); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "func", "-i="+dir).Output() //nolint:gosec // dir is ours
	if err != nil {
		return err
	}
	functions, files, packages := 0, map[string]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		place, rest, _ := strings.Cut(lines.Text(), ":")
		if strings.HasPrefix(place, "total") || strings.HasSuffix(rest, "\t0.0%") {
			continue
		}
		functions++
		files[place], packages[path.Dir(place)] = true, true
	}
	fmt.Printf("| %s | %d | %d | %d |\n", name, functions, len(files), len(packages))
	return nil
}
