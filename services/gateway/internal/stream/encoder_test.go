package stream

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/stream/streamtest"
)

func parse(t *testing.T, b []byte) []streamtest.Frame {
	t.Helper()
	all, err := streamtest.NewReader(strings.NewReader(string(b))).All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFrames(t *testing.T) {
	for _, c := range []struct {
		name, id, event, data, want string
	}{
		{"one line", "7", "text.delta", `{}`, "id: 7\nevent: text.delta\ndata: {}\n\n"},
		{"no id and no name", "", "", "x", "data: x\n\n"},
		{"no data", "7", "", "", "id: 7\ndata: \n\n"},
		{"lines of data", "", "", "a\nb\r\nc\rd\n", "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"},
		{"line ends where none can be", "1\n2", "a\r\nevent: b", "x", "id: 12\nevent: aevent: b\ndata: x\n\n"},
	} {
		if got := string(AppendFrame(nil, c.id, c.event, []byte(c.data))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// splitters are the characters at which Python's str.splitlines, and readers built on it, end a line.
const splitters = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

func TestEveryReaderOfLinesFindsTheSameLines(t *testing.T) {
	text := "a" + splitters + "b"
	event := &sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: &sessionv1.Event{
		Seq: 7, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: text}},
	}}}
	refused := status.New(codes.InvalidArgument, text)
	for _, c := range []struct {
		name  string
		enc   encoder
		lines [2]int // of a message and of a failure
	}{{"server-sent events", sse{}, [2]int{4, 3}}, {"lines of JSON", ndjson{}, [2]int{1, 1}}} {
		message, err := c.enc.message(nil, event)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range [][]byte{message, c.enc.failure(nil, refused)} {
			plain, all := strings.Count(string(b), "\n"), strings.FieldsFunc(string(b), func(r rune) bool { return strings.ContainsRune(splitters, r) })
			if n := strings.Count(string(b), "\n\n"); plain != c.lines[i] || len(all) != plain-n {
				t.Errorf("%s: %d lines, and %d for a reader that splits everywhere: %q", c.name, plain, len(all), b)
			}
		}
	}
	if got := string(AppendFrame(nil, "1"+splitters+"2", "x"+splitters+"y", []byte("{}"))); got != "id: 12\nevent: xy\ndata: {}\n\n" {
		t.Errorf("an id and a name with line ends: %q", got)
	}
}

func TestNoEventIsNamedAsTheErrorOfAStream(t *testing.T) {
	for _, name := range sessionv1.EventNames {
		if name == ErrorEvent || name == "message" {
			t.Errorf("an event is named %q", name)
		}
	}
}

func TestTheBeginningTellsWhenToReconnect(t *testing.T) {
	r := streamtest.NewReader(strings.NewReader(string(sse{reconnect: 1500 * time.Millisecond}.begin(nil))))
	if all, err := r.All(); err != nil || len(all) != 0 || r.Retry != "1500" {
		t.Errorf("frames %+v, retry %q, %v", all, r.Retry, err)
	}
}

func FuzzAppendFrame(f *testing.F) {
	f.Add("7", "text.delta", []byte(`{"a":"b"}`))
	f.Add("", "", []byte("a\r\n\r\nevent: b\ndata: c\n\n"))
	f.Add("1\nid: 2", "x\r\r", []byte("\x00\xff\n"))
	f.Fuzz(func(t *testing.T, id, name string, data []byte) {
		b := AppendFrame([]byte("data: before\n\n"), id, name, data)
		b = AppendFrame(b, "", "after", nil)
		all := parse(t, b)
		if len(all) != 3 || all[0].Data != "before" || all[2].Event != "after" {
			t.Fatalf("%d frames of %q", len(all), b)
		}
		got := all[1]
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		if got.Data != want {
			t.Fatalf("data %q, want %q", got.Data, want)
		}
		clean := fieldCleaner
		if got.ID != clean.Replace(id) || (name != "" && clean.Replace(name) != "" && got.Event != clean.Replace(name)) {
			t.Fatalf("id %q and name %q of %q", got.ID, got.Event, b)
		}
	})
}

func FuzzEventRoundTrip(f *testing.F) {
	f.Add(int64(1), int64(1), "hello")
	f.Add(int64(5), int64(9), "a\r\nb\n\nevent: error\ndata: {}\n\n\u2028\u2029\x00")
	f.Add(int64(-1), int64(1<<62), "\xff\xfe")
	f.Fuzz(func(t *testing.T, first, seq int64, text string) {
		ev := &sessionv1.Event{FirstSeq: first, Seq: seq, Turn: text, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: text}}}
		m := &sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: ev}}
		b, err := sse{}.message([]byte("data: before\n\n"), m)
		if !utf8.ValidString(text) {
			if err == nil || len(b) != len("data: before\n\n") {
				t.Fatalf("%v, %q", err, b)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		all := parse(t, b)
		if len(all) != 2 || all[1].Event != "text.delta" || strings.Contains(all[1].Data, "\n") {
			t.Fatalf("frames %+v", all)
		}
		got := &sessionv1.Event{}
		if err := protojson.Unmarshal([]byte(all[1].Data), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ev, got, protocmp.Transform()); diff != "" {
			t.Fatalf("another event came back (-want +got):\n%s", diff)
		}
		lines, err := ndjson{}.message(nil, m)
		if err != nil || strings.Count(string(lines), "\n") != 1 {
			t.Fatalf("%q, %v", lines, err)
		}
	})
}

func TestAFailureIsOneFrame(t *testing.T) {
	st := problem.Status(errors.New("some\n\nwords"))
	all := parse(t, sse{}.failure(nil, st))
	if len(all) != 1 || all[0].Event != ErrorEvent || strings.Contains(all[0].Data, "words") {
		t.Errorf("frames %+v", all)
	}
}
