package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func corpus(t testing.TB) []byte {
	t.Helper()
	file, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// sealed is a body with the last line that fits it.
func sealed(body string) []byte {
	count := func(kind string) int { return strings.Count(body, `{"type":"`+kind+`"`) }
	sum := sha256.Sum256([]byte(body))
	return fmt.Appendf(nil, "%s{\"type\":\"end\",\"turns\":%d,\"messages\":%d,\"events\":%d,\"sha256\":%q}\n",
		body, count("turn"), count("message"), count("event"), hex.EncodeToString(sum[:]))
}

func check(file []byte) (*File, error) {
	return Check(context.Background(), bytes.NewReader(file), int64(len(file)))
}

// small is the smallest session in which a call was made, line by line.
var small = []string{
	`{"type":"fairlead.session","version":1}`,
	`{"type":"session","session":{"name":"sessions/s","agent":"agents/coder","lastSeq":"3","head":"sessions/s/messages/m3"}}`,
	`{"type":"turn","turn":{"name":"sessions/s/turns/t1","state":"TURN_STATE_COMPLETE","createTime":"2026-01-01T00:00:00Z","endTime":"2026-01-01T00:00:01Z","head":"sessions/s/messages/m3"}}`,
	`{"type":"message","message":{"name":"sessions/s/messages/m1","role":"ROLE_USER","blocks":[{"content":{"text":{"text":"hi"}}}],"turn":"sessions/s/turns/t1","createTime":"2026-01-01T00:00:00Z"}}`,
	`{"type":"message","message":{"name":"sessions/s/messages/m2","parent":"sessions/s/messages/m1","role":"ROLE_ASSISTANT","blocks":[{"toolUse":{"callId":"c1","tool":"Bash"}},{"toolUse":{"callId":"c2","tool":"Bash"}}],"createTime":"2026-01-01T00:00:00Z"}}`,
	`{"type":"message","message":{"name":"sessions/s/messages/m3","parent":"sessions/s/messages/m2","role":"ROLE_USER","blocks":[{"toolResult":{"callId":"c2"}},{"toolResult":{"callId":"c1"}}],"createTime":"2026-01-01T00:00:00Z"}}`,
	`{"type":"event","event":{"firstSeq":"1","seq":"1","time":"2026-01-01T00:00:00Z","sessionCreated":{}}}`,
	`{"type":"event","event":{"firstSeq":"2","seq":"3","time":"2026-01-01T00:00:00Z","turn":"sessions/s/turns/t1","textDelta":{"text":"x"}}}`,
}

func TestAFileIsBelievedOnlyWhole(t *testing.T) {
	body := strings.Join(small, "\n") + "\n"
	if _, err := check(sealed(body)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, with, want string }{
		{"another version", `"version":1`, `"version":2`, "line 1: the export has version 2"},
		{"another header", `fairlead.session`, `other`, "line 1: it is not the beginning"},
		{"no session", small[1] + "\n", "", "line 2: it comes out of order"},
		{"two sessions", small[1], small[1] + "\n" + small[1], "line 3: it comes out of order"},
		{"a turn behind a message", small[2] + "\n" + small[3], small[3] + "\n" + small[2], "line 3: sessions/s/turns/t1 is not in the file"},
		{"an unknown type", `"type":"event"`, `"type":"evil"`, `there is no type "evil"`},
		{"an unknown field of a line", `{"type":"turn",`, `{"type":"turn","x":1,`, "line 3: it is not a line of an export"},
		{"an unknown field of an object", `"lastSeq":"3"`, `"lastSeq":"3","x":1`, "line 2: the session cannot be read"},
		{"a line that holds two objects", small[0], small[0] + small[0], "line 1"},
		{"an object that is missing", `,"event":{"firstSeq":"1","seq":"1","time":"2026-01-01T00:00:00Z","sessionCreated":{}}`, "", "line 7: the event is missing"},
		{"a session of a bad name", `"name":"sessions/s"`, `"name":"sessions/S"`, "line 2: \"sessions/S\" is not the name"},
		{"a title that is too long", `"lastSeq":"3"`, `"lastSeq":"3","title":"` + strings.Repeat("x", 201) + `"`, "line 2: the session is not valid"},
		{"an active turn", `"lastSeq":"3"`, `"lastSeq":"3","activeTurn":"sessions/s/turns/t1"`, "line 2: the session has an active turn"},
		{"negative usage", `"lastSeq":"3"`, `"lastSeq":"3","usage":{"inputTokens":"-1"}`, "line 2: the session has negative usage"},
		{"more finished turns than turns", `"lastSeq":"3"`, `"lastSeq":"3","finishedTurns":2`, "says that 2 turns have ended"},
		{"a turn that runs", "TURN_STATE_COMPLETE", "TURN_STATE_RUNNING", "line 3: the turn has not ended"},
		{"a turn of another session", "sessions/s/turns/t1\",\"state", "sessions/o/turns/t1\",\"state", "line 3: \"sessions/o/turns/t1\" is not the name"},
		{"a turn twice", small[2], small[2] + "\n" + small[2], "line 4: \"sessions/s/turns/t1\" is not the name"},
		{"a turn after what is not there", `,"endTime"`, `,"afterSeq":"4","endTime"`, "line 3: the turn came after event 4"},
		{"a turn without an end", `,"endTime":"2026-01-01T00:00:01Z"`, "", "line 3: the turn has no start or end"},
		{"a message without a role", `"role":"ROLE_USER","blocks":[{"content"`, `"blocks":[{"content"`, "line 4: the message has no role"},
		{"a message twice", small[3], small[3] + "\n" + small[3], "line 5: \"sessions/s/messages/m1\" is not the name"},
		{"a message with a path for an id", `"name":"sessions/s/messages/m1"`, `"name":"sessions/s/messages/../m1"`, "line 4"},
		{"a parent that is not there", `"parent":"sessions/s/messages/m1"`, `"parent":"sessions/s/messages/m9"`, "line 5: sessions/s/messages/m9 is not in the file"},
		{"a circle of parents", `"name":"sessions/s/messages/m1"`, `"name":"sessions/s/messages/m1","parent":"sessions/s/messages/m3"`, "is its own ancestor"},
		{"a message of a turn that is not there", `"turn":"sessions/s/turns/t1","createTime"`, `"turn":"sessions/s/turns/t2","createTime"`, "line 4: sessions/s/turns/t2 is not in the file"},
		{"an empty block", `{"content":{"text":{"text":"hi"}}}`, `{}`, "line 4: block 0 of the message has no content"},
		{"empty content", `{"content":{"text":{"text":"hi"}}}`, `{"content":{}}`, "line 4: block 0 of the message is empty"},
		{"a person that makes calls", `{"content":{"text":{"text":"hi"}}}`, `{"toolUse":{"callId":"c","tool":"Bash"}}`, "line 4: block 0 of the message is not a call"},
		{"a call twice", `"callId":"c2","tool"`, `"callId":"c1","tool"`, "line 5: block 1 of the message is not a call"},
		{"a call without a result", `{"toolResult":{"callId":"c2"}},`, "", "line 6: the message does not answer exactly the calls"},
		{"a result without a call", `{"toolResult":{"callId":"c2"}}`, `{"toolResult":{"callId":"c2"}},{"toolResult":{"callId":"c3"}}`, "line 6: the message does not answer exactly the calls"},
		{"calls at the end", `"head":"sessions/s/messages/m3"}}` + "\n" + `{"type":"turn"`, `"head":"sessions/s/messages/m2"}}` + "\n" + `{"type":"turn"`, "line 5: the conversation ends with unanswered"},
		{"a gap in the log", `"firstSeq":"2"`, `"firstSeq":"3"`, "line 8: the event covers 3 to 3"},
		{"an event that ends before it begins", `"seq":"3","time"`, `"seq":"1","time"`, "line 8: the event covers 2 to 1"},
		{"a log that is shorter than it says", `"lastSeq":"3"`, `"lastSeq":"4"`, "the log ends at 3"},
		{"an event without a time", `"seq":"3","time":"2026-01-01T00:00:00Z"`, `"seq":"3"`, "line 8: the event has no time"},
		{"an event of nothing", `,"textDelta":{"text":"x"}`, "", "line 8: the event has no payload"},
		{"a session that begins twice", `"textDelta":{"text":"x"}`, `"sessionCreated":{}`, "line 8: session.created must be the first"},
		{"an event that voids what is to come", `"textDelta":{"text":"x"}`, `"stepRestarted":{"voidFirstSeq":"1","voidLastSeq":"9"}`, "line 8: the event voids"},
		{"an event of a message that is not there", `"textDelta":{"text":"x"}`, `"stepFinished":{"message":"sessions/s/messages/m9"}`, "line 8: sessions/s/messages/m9 is not in the file"},
		{"a summary that keeps what is not there", `"role":"ROLE_USER","blocks":[{"content"`, `"role":"ROLE_USER","compaction":{"keptFrom":"sessions/s/messages/m9"},"blocks":[{"content"`, "line 4: sessions/s/messages/m9"},
		{"an empty line", small[2] + "\n", small[2] + "\n\n", "line 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(body, c.old) {
				t.Fatalf("%q is not in the file", c.old)
			}
			_, err := check(sealed(strings.Replace(body, c.old, c.with, 1)))
			var bad *Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Python's str.splitlines, and readers built on it, end lines at more characters than LF.
func TestEveryReaderOfLinesFindsTheSameLines(t *testing.T) {
	const splitters = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"
	var file bytes.Buffer
	w, err := NewWriter(&file, &sessionv1.Session{Name: "sessions/s", Title: "a" + splitters + "b"})
	if err != nil {
		t.Fatal(err)
	}
	event := &sessionv1.Event{FirstSeq: 1, Seq: 1, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: splitters}}}
	if err := errors.Join(w.Event(event), w.Close()); err != nil {
		t.Fatal(err)
	}
	lines := strings.FieldsFunc(file.String(), func(r rune) bool { return strings.ContainsRune(splitters, r) })
	if len(lines) != 4 || strings.Count(file.String(), "\n") != 4 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

func TestAFileThatIsNotAsItWasIsFoundOut(t *testing.T) {
	file := corpus(t)
	if _, err := check(file); err != nil {
		t.Fatal(err)
	}
	for n := range file {
		if _, err := check(file[:n]); err == nil {
			t.Errorf("cut off after %d bytes, it is believed", n)
		}
	}
	for n := 0; n < len(file); n += 7 {
		changed := bytes.Clone(file)
		changed[n] ^= 1
		if _, err := check(changed); err == nil {
			t.Errorf("changed at %d, it is believed", n)
		}
	}
}

func TestASummaryMayComeBetweenACallAndItsResult(t *testing.T) {
	body := strings.Join(small, "\n") + "\n"
	summary := `{"type":"message","message":{"name":"sessions/s/messages/m4","parent":"sessions/s/messages/m2","role":"ROLE_USER","compaction":{"keptFrom":"sessions/s/messages/m2"},"createTime":"2026-01-01T00:00:00Z"}}`
	body = strings.Replace(body, small[5], summary+"\n"+strings.Replace(small[5], `"parent":"sessions/s/messages/m2"`, `"parent":"sessions/s/messages/m4"`, 1), 1)
	f, err := check(sealed(body))
	if err != nil {
		t.Fatal(err)
	}
	var depths strings.Builder
	for r, err := range f.Records("sessions/new") {
		if err != nil {
			t.Fatal(err)
		}
		if r.Message != nil {
			fmt.Fprintf(&depths, "%s:%d ", r.Message.Name, r.Depth)
		}
	}
	if want := "sessions/new/messages/m1:1 sessions/new/messages/m2:2 sessions/new/messages/m4:3 sessions/new/messages/m3:4 "; depths.String() != want {
		t.Errorf("the tree is %s", &depths)
	}
}

// FuzzCheck: whatever the bytes, reading them ends without a panic, what is
// wrong with them is an *Error, and what was found good can be written again.
func FuzzCheck(f *testing.F) {
	f.Add(corpus(f))
	f.Add(sealed(strings.Join(small, "\n") + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if at := bytes.LastIndexByte(bytes.TrimSuffix(file, []byte("\n")), '\n'); at >= 0 {
			file = sealed(string(file[:at+1])) // or hardly any input gets past the sum
		}
		got, err := check(file)
		var bad *Error
		if err != nil {
			if !errors.As(err, &bad) {
				t.Fatalf("not the file's fault: %v", err)
			}
			return
		}
		var again bytes.Buffer
		w, err := NewWriter(&again, got.Session)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range got.Records(got.Session.Name) {
			if err == nil {
				err = write(w, r)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := check(again.Bytes()); err != nil {
			t.Fatalf("written again: %v", err)
		}
	})
}

func write(w *Writer, r Record) error {
	switch {
	case r.Turn != nil:
		return w.Turn(r.Turn)
	case r.Message != nil:
		return w.Message(r.Message)
	}
	return w.Event(r.Event)
}

func TestNamesOfOtherSessionsStay(t *testing.T) {
	body := strings.Replace(strings.Join(small, "\n")+"\n", `"sessionCreated":{}`, `"sessionCreated":{"forkedFrom":"sessions/s2"}`, 1)
	body = strings.Replace(body, `"text":"hi"`, `"text":"sessions/s/turns/t1"`, 1)
	f, err := check(sealed(body))
	if err != nil {
		t.Fatal(err)
	}
	var created *sessionv1.SessionCreated
	text := ""
	for r, err := range f.Records("sessions/new") {
		if err != nil {
			t.Fatal(err)
		}
		if r.Event.GetSessionCreated() != nil {
			created = r.Event.GetSessionCreated()
		}
		if b := r.Message.GetBlocks(); len(b) > 0 && text == "" {
			text = b[0].GetContent().GetText().GetText()
		}
	}
	if created.GetForkedFrom() != "sessions/s2" || text != "sessions/s/turns/t1" {
		t.Errorf("got %v and %q", created, text)
	}
}
