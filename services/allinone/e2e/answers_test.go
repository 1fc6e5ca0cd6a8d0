package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// TestAnswersCountOnceWhileServersAreKilled has two people answer each of many waiting calls differently while both
// servers are killed at random moments.
func TestAnswersCountOnceWhileServersAreKilled(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it kills two servers over and over")
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			p := startTwins(t, seed, options{scenario: filepath.Join("testdata", "waiting.yaml"), agents: waiters})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var all []*disputed
			var people sync.WaitGroup
			for n := range 12 {
				d := &disputed{clients: p.clients(), session: p.servers[0].session(t, "waiter"), number: n}
				all = append(all, d)
				d.turn = made(t, p.servers[0].call(t, http.MethodPost, "/v1/"+d.session+"/turns", `{"text":"sleep 0.2; `+append1+`; sleep 0.2"}`))
				people.Go(func() { d.err = d.argue(ctx) })
			}
			p.strike(t, 4)
			people.Wait()
			outcomes := map[string]int{}
			for _, d := range all {
				outcomes[d.examine(ctx, t, p.servers)]++
			}
			t.Logf("killed %v; the calls ended %v", p.struck, outcomes)
		})
	}
}

// disputed is a call about which two people say different things.
type disputed struct {
	clients
	session, turn string
	number        int
	err           error
	words         [2]string // the answers, as they would show in what the command leaves; empty: refused
	taken         [2]bool
}

// argue waits for the call, and sends both answers.
func (d *disputed) argue(ctx context.Context) error {
	var w *waiting
	for w == nil {
		var list struct{ Approvals []*waiting }
		if err := d.get(ctx, "/v1/approvals?session="+d.session, &list); err != nil {
			return err
		}
		if len(list.Approvals) == 1 {
			w = list.Approvals[0]
		}
		pause(ctx)
	}
	wait(ctx, time.Duration(d.number)*200*time.Millisecond) // some wait through several kills
	d.words = [2]string{"ran", []string{"", "edited"}[d.number%2]}
	var bodies [2]string
	for i, word := range d.words {
		switch word {
		case "ran":
			bodies[i] = w.approval(true, "")
		case "":
			bodies[i] = w.approval(false, "")
		default:
			bodies[i] = w.approval(true, `,"updatedArgumentsJson":"{\"command\":\"echo edited >> runs\"}"`)
		}
	}
	var both sync.WaitGroup
	var errs [2]error
	for i := range bodies {
		both.Go(func() {
			code, text, err := d.send(ctx, http.MethodPost, "/v1/"+d.session+"/approvals:resolve", bodies[i])
			d.taken[i] = code == http.StatusOK
			if err == nil && !d.taken[i] && !strings.Contains(text, "CALL_ANSWERED") && !strings.Contains(text, "CALL_ENDED") {
				err = fmt.Errorf("an answer got %d %s", code, text)
			}
			errs[i] = err
		})
	}
	both.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// examine checks that the accepted answer is what was done, and returns how the call ended.
func (d *disputed) examine(ctx context.Context, t *testing.T, servers [2]*system) string {
	t.Helper()
	if d.err != nil || d.taken[0] == d.taken[1] {
		t.Errorf("%s: the answers were taken: %v, %v", d.session, d.taken, d.err)
		return ""
	}
	said := d.words[0]
	if d.taken[1] {
		said = d.words[1]
	}
	var turn memberTurn
	for turn.EndTime.IsZero() {
		if err := d.get(ctx, "/v1/"+d.turn, &turn); err != nil {
			t.Fatalf("%s has not ended: %v", d.turn, err)
		}
		pause(ctx)
	}
	var list struct {
		Events []struct {
			ApprovalRequested, ApprovalResolved json.RawMessage
			ToolCallFinished                    struct{ Outcome string }
		}
	}
	if err := d.get(ctx, "/v1/"+d.session+"/events?page_size=1000", &list); err != nil {
		t.Fatal(err)
	}
	asked, resolved := 0, 0
	var outcomes []string
	for _, e := range list.Events {
		if e.ApprovalRequested != nil {
			asked++
		}
		if e.ApprovalResolved != nil {
			resolved++
		}
		if o := e.ToolCallFinished.Outcome; o != "" {
			outcomes = append(outcomes, strings.TrimPrefix(o, "TOOL_OUTCOME_"))
		}
	}
	outcome, left := strings.Join(outcomes, " "), servers[0].runs(t, d.session)+servers[1].runs(t, d.session)
	want := said + "\n"
	switch {
	case turn.State != "TURN_STATE_COMPLETE" || asked != 1 || resolved != 1:
	case said == "" && outcome == "REFUSED" && left == "", said != "" && outcome == "OK" && left == want, said != "" && outcome == "UNKNOWN" && (left == want || left == ""):
		return outcome
	}
	t.Errorf("%s: %q was said; asked %d times, answered %d times, the call ended %q, the turn %s, and there is %q", d.session, said, asked, resolved, outcome, turn.State, left)
	return outcome
}
