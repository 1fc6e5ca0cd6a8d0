package jobs

import (
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

const ours = "sessions/s/turns/t1"

// piece makes events of every kind that folds, and some that do not.
func piece(r *rapid.T) *sessionv1.Event {
	e := &sessionv1.Event{Turn: rapid.SampledFrom([]string{ours, "sessions/s/turns/t2"}).Draw(r, "turn"), Step: rapid.Int32Range(1, 2).Draw(r, "step")}
	block := rapid.Int32Range(0, 1).Draw(r, "block")
	call := "c" + strconv.Itoa(int(block))
	text := rapid.StringMatching("[a-z]{1,3}").Draw(r, "text")
	switch rapid.IntRange(0, 5).Draw(r, "kind") {
	case 0, 1:
		e.Body = &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Block: block, Text: text}}
	case 2:
		e.Body = &sessionv1.Event_ThinkingDelta{ThinkingDelta: &sessionv1.ThinkingDelta{Block: block, Text: text}}
	case 3:
		e.Body = &sessionv1.Event_ToolCallArgumentsDelta{ToolCallArgumentsDelta: &sessionv1.ToolCallArgumentsDelta{CallId: call, Json: text}}
	case 4:
		stream := rapid.SampledFrom([]string{"stdout", "stderr"}).Draw(r, "stream")
		e.Body = &sessionv1.Event_ToolCallOutputDelta{ToolCallOutputDelta: &sessionv1.ToolCallOutputDelta{CallId: call, Stream: stream, Data: []byte(text)}}
	default:
		e.Body = &sessionv1.Event_Warning{Warning: &sessionv1.Warning{Message: text}}
	}
	return e
}

func randomLog(r *rapid.T) []*sessionv1.Event {
	var log []*sessionv1.Event
	seq := int64(0)
	for range rapid.IntRange(1, 60).Draw(r, "events") {
		e := piece(r)
		e.FirstSeq = seq + 1
		seq += rapid.Int64Range(1, 3).Draw(r, "covers") // the committer may have merged it
		e.Seq = seq
		log = append(log, e)
	}
	return log
}

func clone(events []*sessionv1.Event) []*sessionv1.Event {
	out := make([]*sessionv1.Event, len(events))
	for i, e := range events {
		out[i] = proto.CloneOf(e)
	}
	return out
}

// reduce is the documented reducer: an event takes the place of those that it
// covers, one that is not above the highest number is ignored. The state is the
// text of everything, by what it is a part of.
func reduce(t interface{ Fatalf(string, ...any) }, streams ...[]*sessionv1.Event) map[string]string {
	var log []*sessionv1.Event
	for _, events := range streams {
		for _, e := range events {
			if n := len(log); n > 0 && e.Seq <= log[n-1].Seq {
				continue
			}
			for len(log) > 0 && log[len(log)-1].Seq >= e.FirstSeq {
				if log[len(log)-1].FirstSeq < e.FirstSeq {
					t.Fatalf("%d..%d covers a part of %d..%d", e.FirstSeq, e.Seq, log[len(log)-1].FirstSeq, log[len(log)-1].Seq)
				}
				log = log[:len(log)-1]
			}
			log = append(log, e)
		}
	}
	state := map[string]string{}
	next := int64(1)
	for _, e := range log {
		if e.FirstSeq != next {
			t.Fatalf("%d..%d in the place of %d", e.FirstSeq, e.Seq, next)
		}
		next = e.Seq + 1
		of, text := content(e)
		state[e.Turn+" "+strconv.Itoa(int(e.Step))+" "+of] += text
	}
	return state
}

func content(e *sessionv1.Event) (of, text string) {
	switch b := e.Body.(type) {
	case *sessionv1.Event_TextDelta:
		return "text " + strconv.Itoa(int(b.TextDelta.Block)), b.TextDelta.Text
	case *sessionv1.Event_ThinkingDelta:
		return "thinking " + strconv.Itoa(int(b.ThinkingDelta.Block)), b.ThinkingDelta.Text
	case *sessionv1.Event_ToolCallArgumentsDelta:
		return "arguments " + b.ToolCallArgumentsDelta.CallId, b.ToolCallArgumentsDelta.Json
	case *sessionv1.Event_ToolCallOutputDelta:
		return b.ToolCallOutputDelta.Stream + " " + b.ToolCallOutputDelta.CallId, string(b.ToolCallOutputDelta.Data)
	}
	return "warnings", e.GetWarning().GetMessage() + ";"
}

func after(events []*sessionv1.Event, seq int64) []*sessionv1.Event {
	for i, e := range events {
		if e.Seq > seq {
			return events[i:]
		}
	}
	return nil
}

func TestAFoldedLogReducesToTheSameFromAnywhere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := randomLog(r)
		want := reduce(r, log)
		folded := foldDeltas(clone(log))
		if d := cmp.Diff(want, reduce(r, folded)); d != "" {
			r.Fatalf("the folded log: %s", d)
		}
		// A client saw some of the log before it was folded, and goes on after it was.
		seen := rapid.IntRange(0, len(log)).Draw(r, "seen")
		last := int64(0)
		if seen > 0 {
			last = log[seen-1].Seq
		}
		if d := cmp.Diff(want, reduce(r, log[:seen], after(folded, last))); d != "" {
			r.Fatalf("resumed after %d: %s", last, d)
		}
		if d := cmp.Diff(folded, foldDeltas(clone(folded)), protocmp.Transform()); d != "" {
			r.Fatalf("folded twice: %s", d)
		}
		for i := 1; i < len(folded); i++ {
			a, x := content(folded[i-1])
			b, _ := content(folded[i])
			if x != "" && a == b && a != "warnings" && folded[i-1].Turn == folded[i].Turn && folded[i-1].Step == folded[i].Step {
				r.Fatalf("%d and %d are still apart", folded[i-1].Seq, folded[i].Seq)
			}
		}
	})
}

func TestAFoldedEventIsBounded(t *testing.T) {
	var log []*sessionv1.Event
	for i := range int64(3000) {
		log = append(log, &sessionv1.Event{FirstSeq: i + 1, Seq: i + 1, Turn: ours, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: strings.Repeat("x", 500)}}})
	}
	want := reduce(t, clone(log))
	folded := foldDeltas(log)
	if len(folded) < 4 || len(folded) > 8 {
		t.Errorf("%d events", len(folded))
	}
	for _, e := range folded {
		if n := proto.Size(e); n > maxFolded+32<<10 {
			t.Errorf("an event of %d bytes", n)
		}
	}
	if d := cmp.Diff(want, reduce(t, folded)); d != "" {
		t.Error("the text has changed")
	}
}

var migrated = sqlitetest.NewTemplate(sqlite.Migrations())

// open makes a store with a session whose turn t1 has ended.
func open(t *testing.T, log []*sessionv1.Event) (store.Store, store.Key) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "session.db")
	migrated.Copy(t, file)
	s, err := sqlite.Open(t.Context(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k := store.Key{Tenant: "acme", Session: "s"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.CreateSession(t.Context(), store.NewSession{Key: k, Event: &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{}}}})
	must(err)
	turn := &store.TurnRow{ID: "t1", Turn: &sessionv1.Turn{Name: ours}}
	_, err = s.Submit(t.Context(), store.Submit{Key: k, Command: store.Command{Kind: store.CommandTurn, TurnID: "t1"}, Turn: turn})
	must(err)
	leases, err := s.Claim(t.Context(), store.Claim{TTL: time.Hour})
	must(err)
	done := &sessionv1.Turn{Name: ours, State: sessionv1.TurnState_TURN_STATE_COMPLETE, AfterSeq: 1}
	errs, err := s.Commit(t.Context(), []store.Write{{Lease: leases[0], LastSeq: 1, Events: log, Turns: []*store.TurnRow{{ID: "t1", Turn: done}}}})
	must(err)
	must(errs[0])
	return s, k
}

// numbered gives events their numbers behind session.created, and ends the turn.
func numbered(events ...*sessionv1.Event) []*sessionv1.Event {
	events = append(events, &sessionv1.Event{Turn: ours, Body: &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{}}})
	for i, e := range events {
		e.FirstSeq, e.Seq = int64(i)+2, int64(i)+2
	}
	return events
}

func text(s string) *sessionv1.Event {
	return &sessionv1.Event{Turn: ours, Step: 1, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: s}}}
}

func TestTheJobIndexesAtOnceAndFoldsLater(t *testing.T) {
	var events []*sessionv1.Event
	for range 5000 { // more than a page
		events = append(events, text("word "))
	}
	s, k := open(t, numbered(events...))
	jobs, err := s.ClaimJobs(t.Context(), store.JobClaim{Kinds: []store.JobKind{store.JobAfterTurn}, TTL: time.Hour})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	count := func() int {
		t.Helper()
		all, err := s.ListEvents(t.Context(), k, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		next := int64(1)
		for _, e := range all {
			if e.FirstSeq != next {
				t.Fatalf("%d..%d in the place of %d", e.FirstSeq, e.Seq, next)
			}
			next = e.Seq + 1
		}
		return len(all)
	}
	deps := &Deps{Store: s, FoldAfter: time.Minute}
	again, err := deps.afterTurn(t.Context(), jobs[0])
	if err != nil || again == nil || again.After != time.Minute || count() != 5002 {
		t.Fatalf("first %+v, %v, %d events", again, err, count())
	}
	for range 2 { // the second time there is nothing left to do
		done, err := deps.afterTurn(t.Context(), store.Job{Tenant: jobs[0].Tenant, ID: jobs[0].ID, Body: again.Body})
		if err != nil || done != nil || count() != 3 {
			t.Fatalf("then %+v, %v, %d events", done, err, count())
		}
	}
	if got, err := s.ListEvents(t.Context(), k, 2500, 1, 0); err != nil || len(got[0].GetTextDelta().GetText()) != 5000*5 {
		t.Errorf("in the middle: %v, %v", got, err)
	}
}

func TestWhatIsGoneNeedsNoTending(t *testing.T) {
	s, k := open(t, numbered())
	job := plan.TendJob(store.Key{Tenant: k.Tenant, Session: "none"}, "t1")
	for _, body := range []string{"", onlyFold} {
		job.Body = []byte(body)
		if _, err := (&Deps{Store: s}).afterTurn(t.Context(), job); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
	if _, err := (&Deps{Store: s}).afterTurn(t.Context(), store.Job{ID: "no turn"}); err == nil {
		t.Error("a job without a turn was done")
	}
}
