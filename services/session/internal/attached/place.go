package attached

import (
	"context"
	"fmt"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// warnAfter is the time after which people learn that a turn waits for a process.
const warnAfter = 2 * time.Second

// place finds a process for the turn, if it has none. While processes are attached whose places are all taken,
// the turn waits, as long as its own time allows. While none is attached it waits for as long as the operator
// allows. If only another replica has a process with a free place, the turn goes on there.
func (h *Hub) place(sc state.Scope, hold *holding) (state.Outcome, error) {
	if hold.p != nil {
		select {
		case <-hold.p.over:
			h.drop(sc, hold, nil)
		default:
			return state.Outcome{}, nil
		}
	}
	w := waiting{hub: h, sc: sc, name: runtimeOf(sc), begun: time.Now()}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		p, processes, changed := h.pick(w.name)
		if p != nil {
			hold.p, hold.seen = p, nil
			return state.Outcome{}, nil
		}
		if out, err := w.look(processes); err != nil || !out.GoesOn() {
			return out, err
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-sc.Done():
			return state.Stopped(), nil
		}
	}
}

// waiting is the wait of a turn for a process.
type waiting struct {
	hub    *Hub
	sc     state.Scope
	name   name
	begun  time.Time
	absent time.Time // since when no process is attached anywhere
	warned bool
}

// look looks for a process of another replica, and at the time. processes is how many this one has.
func (w *waiting) look(processes int) (state.Outcome, error) {
	if w.sc.Draining.Load() {
		return state.Outcome{}, state.ErrHandOver
	}
	others, err := w.others()
	if err != nil {
		w.sc.Logger.WarnContext(w.sc, "cannot read which runtimes other replicas have", "error", err)
	}
	for _, a := range others {
		if a.Turns < a.Places {
			return state.Outcome{}, &state.PassOnError{Replica: a.Replica}
		}
		processes += a.Processes
	}
	if processes > 0 {
		w.absent = time.Time{}
	} else if w.absent.IsZero() {
		w.absent = time.Now()
	} else if time.Since(w.absent) >= w.hub.config.Wait {
		return state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_UNAVAILABLE, fmt.Sprintf(
			"No process is attached for the runtime %s, and none came within %v. Start one that attaches as %q, then send the message again.",
			w.sc.RuntimeName(), w.hub.config.Wait, w.name.runtime)), nil
	}
	return state.Outcome{}, w.warn(processes)
}

// others lists what other replicas have.
func (w *waiting) others() ([]store.Attachment, error) {
	ctx, cancel := context.WithTimeout(w.sc, beat)
	defer cancel()
	all, err := w.hub.store.ListAttachments(ctx, w.name.tenant, w.name.runtime)
	if err != nil {
		return nil, err
	}
	var others []store.Attachment
	for _, a := range all {
		if a.Replica != w.hub.replica {
			others = append(others, a)
		}
	}
	return others, nil
}

// warn tells people once what the turn waits for.
func (w *waiting) warn(processes int) error {
	if w.warned || time.Since(w.begun) < warnAfter {
		return nil
	}
	w.warned = true
	text := fmt.Sprintf("No process is attached for the runtime %s. Waiting for one, for %v at most.", w.sc.RuntimeName(), w.hub.config.Wait)
	if processes > 0 {
		text = fmt.Sprintf("All places of the processes of the runtime %s are taken. Waiting for one.", w.sc.RuntimeName())
	}
	return w.sc.Append(store.Write{Events: []*sessionv1.Event{w.sc.StepEvent(state.Warning("RUNTIME_AWAY", text))}})
}
