package a2a

import (
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

var place = ref{turn: "sessions/s/turns/t", context: "c", base: "http://h"}

// logged makes a log.
type logged struct {
	seq  int64
	step int32
	all  []*sessionv1.Event
}

func (l *logged) add(e *sessionv1.Event) *logged {
	l.seq++
	e.FirstSeq, e.Seq, e.Turn, e.Step = l.seq, l.seq, place.turn, l.step
	e.Time = timestamppb.New(time.Unix(1000+l.seq, 0))
	l.all = append(l.all, e)
	return l
}

func queued(s string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnQueued{TurnQueued: &sessionv1.TurnQueued{Content: []*commonv1.Content{textContent(s)}}}}
}

func started() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnStarted{TurnStarted: &sessionv1.TurnStarted{}}}
}

func delta(s string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: s}}}
}

func restarted() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{}}}
}

func stepped() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_StepFinished{StepFinished: &sessionv1.StepFinished{}}}
}

func asked(call string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{CallId: call, Tool: "Write", Digest: "d", ArgumentsJson: `{"n":9007199254740993}`}}}
}

func login(call string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_QuestionRequested{QuestionRequested: &sessionv1.QuestionRequested{
		CallId: call, Question: &commonv1.Question{Id: "1", Message: "Log in.", Url: "https://login.example.com"},
	}}}
}

func approved(call string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{CallId: call, Approved: true}}}
}

func waiting() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{}}}
}

func resumed() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnResumed{TurnResumed: &sessionv1.TurnResumed{}}}
}

func of(call string, e *sessionv1.Event) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_SubagentEvent{SubagentEvent: &sessionv1.SubagentEvent{CallId: call, Event: e}}}
}

func gave(call string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_SubagentStarted{SubagentStarted: &sessionv1.SubagentStarted{CallId: call, Session: "sessions/sub"}}}
}

func changed(path string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ArtifactsChanged{ArtifactsChanged: &sessionv1.ArtifactsChanged{Artifacts: []*sessionv1.Artifact{{Path: path, MediaType: "text/plain", Size: 3}}}}}
}

func ended(s sessionv1.TurnState, output string) *sessionv1.Event {
	f := &sessionv1.TurnFinished{State: s, OutputJson: output}
	if s != sessionv1.TurnState_TURN_STATE_COMPLETE {
		f.Error = &sessionv1.TurnError{Reason: "WHY", Message: "It stopped."}
	}
	return &sessionv1.Event{Body: &sessionv1.Event_TurnFinished{TurnFinished: f}}
}

const complete = sessionv1.TurnState_TURN_STATE_COMPLETE

// line writes what a stream says briefly.
func line(u update) string {
	switch {
	case u.Task != nil:
		return "task " + strings.TrimPrefix(u.Task.Status.State, "TASK_STATE_")
	case u.Status != nil:
		return strings.TrimPrefix(u.Status.Status.State, "TASK_STATE_")
	}
	a := u.Artifact
	s := a.Artifact.ID
	if a.Append {
		s += "+"
	}
	if t := a.Artifact.Parts[0].Text; t != nil {
		s += "=" + *t
	}
	if a.LastChunk {
		s += "."
	}
	return s
}

// show returns the stream of a log, from an event on.
func show(t *testing.T, all []*sessionv1.Event, from int64, answered ...string) (lines []string, said []update) {
	t.Helper()
	f := newFold(place)
	f.answered = map[string]bool{}
	for _, a := range answered {
		f.answered[a] = true
	}
	e := &encoder{fold: f, from: from, history: -1, stays: true, frame: func(dst []byte, v any) ([]byte, error) {
		b, err := json.Marshal(v)
		if err != nil {
			return dst, err
		}
		var u update
		if err := json.Unmarshal(b, &u); err != nil {
			t.Fatal(err)
		}
		lines, said = append(lines, line(u)), append(said, u)
		return append(dst, b...), nil
	}}
	for _, ev := range all {
		_, complete, err := e.Event(nil, ev)
		if err != nil {
			t.Fatal(err)
		}
		if complete {
			break
		}
	}
	return lines, said
}

func TestWhatAStreamSays(t *testing.T) {
	log := func(all ...*sessionv1.Event) []*sessionv1.Event {
		l := &logged{}
		l.add(queued("hello")).add(started())
		l.step = 1
		for _, e := range all {
			l.add(e)
		}
		return l.all
	}
	for _, c := range []struct {
		name string
		log  []*sessionv1.Event
		from int64
		want string
	}{
		{"a text", log(delta("a"), delta("b"), stepped(), ended(complete, "")), 1, "task SUBMITTED|WORKING|text-1=a|text-1+=b|text-1+=.|COMPLETED"},
		{"from the middle", log(delta("a"), delta("b"), stepped(), ended(complete, "")), 3, "task WORKING|text-1+=b|text-1+=.|COMPLETED"},
		{"a step that begins again", log(delta("a"), restarted(), delta("b"), ended(complete, "")), 3, "task WORKING|text-1=|text-1=b|COMPLETED"},
		{"a failure", log(ended(sessionv1.TurnState_TURN_STATE_FAILED, "")), 2, "task WORKING|FAILED"},
		{"a limit", log(ended(sessionv1.TurnState_TURN_STATE_PARTIAL, "")), 2, "task WORKING|FAILED"},
		{"an interrupt", log(ended(sessionv1.TurnState_TURN_STATE_INTERRUPTED, "")), 2, "task WORKING|CANCELED"},
		{"a file and an output", log(changed("artifacts/a b.txt"), ended(complete, `{"n":9007199254740993}`)), 2, "task WORKING|file-artifacts/a b.txt.|output.|COMPLETED"},
		{"an approval", log(asked("1"), waiting(), approved("1"), resumed(), ended(complete, "")), 2, "task WORKING|INPUT_REQUIRED"},
		{"its answer", log(asked("1"), waiting(), approved("1"), resumed(), ended(complete, "")), 5, "task WORKING|COMPLETED"},
		{"two approvals", log(asked("1"), asked("2"), waiting(), approved("1"), approved("2"), ended(complete, "")), 5, "task INPUT_REQUIRED|INPUT_REQUIRED"},
		{"a login", log(login("1"), waiting()), 2, "task WORKING|AUTH_REQUIRED"},
		{"a subagent's approval", log(gave("1"), of("1", asked("x")), of("1", waiting()), of("1", approved("x")), ended(complete, "")), 2, "task WORKING|INPUT_REQUIRED"},
	} {
		if got, _ := show(t, c.log, c.from); strings.Join(got, "|") != c.want {
			t.Errorf("%s: %s, want %s", c.name, strings.Join(got, "|"), c.want)
		}
	}
	if got, _ := show(t, log(asked("1"), waiting(), approved("1"), ended(complete, "")), 4, "1"); strings.Join(got, "|") != "task WORKING|COMPLETED" {
		t.Errorf("an answer that the log has not yet: %v", got)
	}
	if got, _ := show(t, log(asked("1"), waiting(), approved("1"), asked("1"), waiting()), 4, "1"); strings.Join(got, "|") != "task WORKING|INPUT_REQUIRED" {
		t.Errorf("a call that asks again: %v", got)
	}
}

func TestATaskKeepsEveryDigitAndNamesItsFiles(t *testing.T) {
	l := &logged{}
	for _, e := range []*sessionv1.Event{queued("q"), started(), asked("1"), waiting(), approved("1"), changed("artifacts/a b.txt"), ended(complete, `{"n":9007199254740993}`)} {
		l.add(e)
	}
	f := newFold(place)
	for _, e := range l.all {
		f.add(e)
	}
	b, err := json.Marshal(f.task())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"id":"s.t"`, `"contextId":"c"`, `"arguments":{"n":9007199254740993}`, `"data":{"n":9007199254740993}`,
		`"url":"http://h/v1/sessions/s/files/artifacts/a%20b.txt"`, `"filename":"a b.txt"`, `"timestamp":"1970-01-01T00:16:47.000Z"`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the task lacks %s: %s", want, b)
		}
	}
}

// reduce makes a task of a stream, as the protocol says.
func reduce(t *testing.T, said []update) task {
	t.Helper()
	var x task
	for _, u := range said {
		switch {
		case u.Task != nil:
			x = *u.Task
		case u.Status != nil:
			x.Status = u.Status.Status
			if m := u.Status.Metadata; m != nil {
				x.Metadata = m
			}
		default:
			a := u.Artifact
			at := -1
			for i := range x.Artifacts {
				if x.Artifacts[i].ID == a.Artifact.ID {
					at = i
				}
			}
			switch {
			case at < 0 && a.Append:
				t.Fatalf("%s is appended to, and was not there", a.Artifact.ID)
			case at < 0:
				x.Artifacts = append(x.Artifacts, a.Artifact)
			case a.Append:
				s := *x.Artifacts[at].Parts[0].Text + *a.Artifact.Parts[0].Text
				x.Artifacts[at].Parts = []part{textPart(s)}
			default:
				x.Artifacts[at] = a.Artifact
			}
		}
	}
	x.History = nil // messages are no reliable part of a stream
	var kept []artifact
	for _, a := range x.Artifacts {
		if a.Parts[0].Text == nil || *a.Parts[0].Text != "" {
			kept = append(kept, a)
		}
	}
	slices.SortFunc(kept, func(a, b artifact) int { return strings.Compare(a.ID, b.ID) }) // no order is promised
	x.Artifacts = kept
	return x
}

// A client that follows a log from any cut has the same task in the end.
func TestAnyCutReadsTheSame(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := (&logged{}).add(queued("q")).add(started())
		for l.step = 1; l.step < 4; l.step++ {
			for range random.IntN(12) {
				switch random.IntN(6) {
				case 0:
					l.add(restarted())
				case 1:
					l.add(changed([]string{"artifacts/a", "artifacts/b"}[random.IntN(2)]))
				default:
					l.add(delta(string(rune('a' + random.IntN(26)))))
				}
			}
			l.add(stepped())
			if random.IntN(3) == 0 {
				l.add(asked("x")).add(waiting()).add(approved("x")).add(resumed())
			}
		}
		l.add(ended([]sessionv1.TurnState{complete, sessionv1.TurnState_TURN_STATE_FAILED}[random.IntN(2)], ""))
		f := newFold(place)
		for _, e := range l.all {
			f.add(e)
		}
		want, _ := json.Marshal(reduce(t, []update{{Task: ptr(f.task())}}))
		var said []update
		for from := int64(1 + random.IntN(len(l.all))); ; {
			_, more := show(t, l.all, from)
			said = append(said, more...)
			if terminal(said[len(said)-1].state()) {
				break
			}
			from += int64(1 + random.IntN(3)) // it waits: another stream begins later
			from = min(from, l.seq)
		}
		if got, _ := json.Marshal(reduce(t, said)); string(got) != string(want) {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func (u update) state() string {
	switch {
	case u.Task != nil:
		return u.Task.Status.State
	case u.Status != nil:
		return u.Status.Status.State
	}
	return ""
}

func TestTheWorkOfDeltasIsLinear(t *testing.T) {
	bytes := func(deltas int) int {
		f := newFold(ref{turn: "sessions/s/turns/t"})
		delta := &sessionv1.Event{Turn: f.turn, Step: 1, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: strings.Repeat("x", 50)}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range deltas {
			f.add(delta)
		}
		runtime.ReadMemStats(&after)
		if n := len(*f.artifacts[0].Parts[0].Text); n != 50*deltas {
			t.Errorf("the text has %d bytes", n)
		}
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	if one, two := bytes(1500), bytes(3000); two > 3*one {
		t.Errorf("1,500 deltas allocate %d bytes, twice as many %d", one, two)
	}
}
