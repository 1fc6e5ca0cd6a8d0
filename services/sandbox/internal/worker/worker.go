// Package worker makes the sandbox a worker of a Managed Agents server. It takes sessions from the work queue of a
// self-hosted environment, makes their calls in workspaces of this node, and posts the results.
//
// A call has an effect at most once: its id in the sandbox's journal is derived from the id of its event. A worker that
// comes back after a crash answers from the journal. If a crash ended the call, the result says that it was lost.
package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// Worker serves the queue of an environment.
type Worker struct {
	config  Config
	api     *api
	sandbox *sandbox
	log     *slog.Logger

	mu   sync.Mutex
	busy map[string]chan struct{} // by session; closed when its item has ended
}

// New returns a worker that makes calls at the sandbox services of a connection. Commands reach what network allows.
func New(c Config, to grpc.ClientConnInterface, network *sandboxv1.NetworkPolicy, log *slog.Logger) (*Worker, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	name := c.Name
	if name == "" {
		host, _ := os.Hostname() // without one the random end is enough
		name = strings.TrimPrefix(host+"-"+strings.ToLower(rand.Text()[:8]), "-")
	}
	base := strings.TrimSuffix(strings.TrimRight(c.URL, "/"), "/v1") + "/v1"
	return &Worker{
		config: c, sandbox: newSandbox(to, network), log: log, busy: map[string]chan struct{}{},
		api: &api{http: newClient(), base: base, token: key, worker: name},
	}, nil
}

// Run serves the queue until the context ends. Then it takes no more calls, lets those that run finish within the grace
// time, and gives its sessions back. An error says why the queue cannot be served.
func (w *Worker) Run(ctx context.Context) error {
	w.log.InfoContext(ctx, "worker ready", "url", w.config.URL, "environment", w.config.Environment, "worker", w.api.worker)
	items, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	defer kill(nil)
	polling, stop := context.WithCancel(ctx)
	defer stop()
	stopGrace := context.AfterFunc(polling, func() {
		t := time.AfterFunc(w.config.Grace, func() { kill(errStopping) })
		context.AfterFunc(items, func() { t.Stop() })
	})
	defer stopGrace()
	var serving sync.WaitGroup
	slots := make(chan struct{}, w.config.MaxSessions)
	err := w.poll(polling, slots, func(got *work) {
		serving.Go(func() {
			defer func() { <-slots }()
			w.serve(items, polling.Done(), got)
		})
	})
	stop()
	serving.Wait()
	return err
}

// poll takes work while there is a free slot, which take gives back.
func (w *Worker) poll(ctx context.Context, slots chan struct{}, take func(*work)) error {
	delay := growing(time.Minute)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		got, err := w.claim(ctx)
		if got != nil {
			delay.Reset()
			take(got)
			continue
		}
		<-slots
		next := time.Second
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of the context is no fault
		case err != nil && !transient(err):
			return w.explain(err)
		case err != nil:
			next = wait(err, delay.NextBackOff())
			w.log.WarnContext(ctx, "cannot ask for work; trying again", "error", w.explain(err).Error(), "in", next.Round(time.Millisecond).String())
		default:
			delay.Reset()
		}
		if !pause(ctx, next) {
			return nil
		}
	}
}

// claim takes a work item from the queue; nil: there is none.
func (w *Worker) claim(ctx context.Context) (*work, error) {
	got, err := w.api.poll(ctx, w.config.Environment)
	if err != nil || got == nil {
		return nil, err
	}
	// An item whose acknowledgement fails comes again.
	if err := w.api.call(ctx, http.MethodPost, got.path()+"/ack", nil, nil); err != nil {
		w.log.WarnContext(ctx, "cannot acknowledge a work item", "work", got.ID, "error", err.Error())
		return nil, nil //nolint:nilnil // the queue itself can be served
	}
	return got, nil
}

// explain says what a refusal of the queue means.
func (w *Worker) explain(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Errorf("cannot reach the server at %s: %w", w.config.URL, err)
	}
	switch e.Status {
	case http.StatusUnauthorized:
		return fmt.Errorf("the server does not know the environment key. %s (%w)", makeKey, err)
	case http.StatusForbidden:
		return fmt.Errorf("the key does not serve the environment %s. %s (%w)", w.config.Environment, makeKey, err)
	case http.StatusNotFound:
		return fmt.Errorf("%w: check that the environment %s exists there, and that the url is right (for Fairlead's gateway it ends in /anthropic)", err, w.config.Environment)
	}
	return err
}

// serve serves a work item. An item of a session that is still being left waits for that.
func (w *Worker) serve(ctx context.Context, stopping <-chan struct{}, got *work) {
	mine := *w.api
	if token := credential(got.Secret); token != "" {
		mine.token = token
	}
	log := w.log.With("session", got.Data.ID, "work", got.ID)
	i := &item{
		api: &mine, work: got, box: w.sandbox.workspace(w.config.Environment, got.Data.ID), log: log,
		lease: w.config.Lease, maxIdle: w.config.MaxIdle, stopping: stopping,
	}
	if got.Data.Type != "session" { // such as a health check
		i.release(ctx, nil)
		return
	}
	defer w.reserve(got.Data.ID)()
	log.InfoContext(ctx, "serving the session")
	i.serve(ctx)
}

// reserve waits until no item of the session is being served, and returns the function that ends this one.
func (w *Worker) reserve(session string) (end func()) {
	mine := make(chan struct{})
	w.mu.Lock()
	before := w.busy[session]
	w.busy[session] = mine
	w.mu.Unlock()
	if before != nil {
		<-before
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.busy[session] == mine {
			delete(w.busy, session)
		}
		close(mine)
	}
}
