package agui

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

func parsed(t *testing.T, text string) *input {
	t.Helper()
	in := &input{}
	if err := wire.DecodeJSON([]byte(text), in); err != nil {
		t.Fatal(err)
	}
	if err := in.check(); err != nil {
		t.Fatal(err)
	}
	return in
}

func TestWhatReachesTheModel(t *testing.T) {
	in := parsed(t, `{"threadId":"t","runId":"r","state":{"city":"Rome","fairlead":{"status":"x"}},"context":[{"description":"the page","value":"home"}],
		"messages":[{"id":"s","role":"system","content":"Be brief."},{"id":"`+turnID+`-note-3","role":"developer","content":"ours"},{"id":"u0","role":"user","content":"old"},
		{"id":"a","role":"assistant","content":"said"},
		{"id":"u","role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"data","value":"AQI=","mimeType":"image/png"}},
			{"type":"image","source":{"type":"url","value":"data:image/gif;base64,AQ=="}},{"type":"document","source":{"type":"url","value":"file://f1"}},
			{"type":"image","source":{"type":"url","value":"http://x/a.png"}},{"type":"audio","source":{"type":"data","value":"AQ==","mimeType":"audio/wav"}}]}]}`)
	req, err := in.created(0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range req.GetContent() {
		switch {
		case c.GetText() != nil:
			got = append(got, c.GetText().GetText())
		case c.GetImage() != nil:
			got = append(got, c.GetImage().GetMediaType()+string(rune('0'+len(c.GetImage().GetData()))))
		default:
			got = append(got, c.GetDocument().GetUri())
		}
	}
	if s, want := strings.Join(got, "|"), "look|image/png2|image/gif1|file://f1|(The user sent an image: http://x/a.png)|(The user sent an audio audio/wav, which cannot be read here.)"; s != want {
		t.Errorf("the content is %s, want %s", s, want)
	}
	if c, want := req.GetOptions().GetContext(), "Be brief.\n\nthe page:\nhome\n\nThe state of the application:\n{\"city\":\"Rome\"}"; c != want {
		t.Errorf("the context is %q, want %q", c, want)
	}
	if !in.hasOwn() || in.state() == nil || !in.old() {
		t.Error("the state is not seen")
	}
}

func TestIdsThatAnswersRepeatAreShort(t *testing.T) {
	for _, field := range []string{"threadId", "runId", "parentRunId"} {
		in := &input{ThreadID: "t", RunID: "r"}
		long, err := json.Marshal(map[string]string{field: strings.Repeat("x", wire.MostID+1)})
		if err == nil {
			err = wire.DecodeJSON(long, in)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := in.check(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestAnAnswerKeepsItsForm(t *testing.T) {
	a := asked("c").GetApprovalRequested()
	for payload, field := range map[string]string{
		`{"approved":true}`: "", `{"approved":"yes"}`: "resume[0].payload", `null`: "resume[0].payload", `{}`: "resume[0].payload",
		`{"approved":true,"editedArgs":[1]}`: "resume[0].payload.editedArgs", `{"approved":true,"scope":"ever"}`: "resume[0].payload.scope",
		`{"approved":true,"mode":"bypass"}`: "resume[0].payload.mode",
	} {
		req, err := resumeEntry{Status: "resolved", Payload: json.RawMessage(payload)}.approval("resume[0]", "sessions/s", a)
		if field == "" && (err != nil || !req.GetApproved() || req.GetDigest() != "d") || field != "" && (err == nil || wire.FaultOf(err).Field != field) {
			t.Errorf("%s: %v %v", payload, req, err)
		}
	}
}

func TestIDsOfInterrupts(t *testing.T) {
	for id, want := range map[string]interruptRef{
		turnID + "/12/" + turnID + ".1.0":    {turn: turnID, seq: 12, call: turnID + ".1.0"},
		turnID + "/12/" + turnID + ".1.0/q1": {turn: turnID, seq: 12, call: turnID + ".1.0", question: "q1"},
		"another's":                          {}, "a/b/c": {}, "a/0/c": {}, "a/1/": {}, "/1/c": {},
	} {
		if got, ok := parseInterrupt(id); ok != (want.turn != "") || ok && got != want {
			t.Errorf("%s: %v %t", id, got, ok)
		}
	}
}

// sameMessage returns a request with n new messages that say the same, under one id.
func sameMessage(n int) string {
	return `{"threadId":"t","runId":"r","messages":[` + strings.Repeat(`{"id":"u","role":"user","content":"hi"},`, n-1) + `{"id":"u","role":"user","content":"hi"}]}`
}

func TestTheNumberOfMessagesIsJudgedFirst(t *testing.T) {
	for body, field := range map[string]string{
		sameMessage(wire.MostMessages + 1): "messages",
		`{"threadId":"t","runId":"r","tools":[{}` + strings.Repeat(",{}", wire.MostTools) + `]}`:                             "tools",
		`{"threadId":"t","runId":"r","context":[{}` + strings.Repeat(",{}", mostContext) + `]}`:                              "context",
		`{"threadId":"t","runId":"r","resume":[{}` + strings.Repeat(",{}", mostResume) + `]}`:                                "resume",
		`{"threadId":"t","runId":"r","messages":[7` + strings.Repeat(",7", wire.MostMessages) + `]}`:                         "messages",
		`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":[{}` + strings.Repeat(",{}", 64) + `]}]}`: "messages[0].content",
		sameMessage(65): "messages",
	} {
		in := &input{}
		err := wire.DecodeJSON([]byte(body), in)
		if err == nil {
			err = in.check()
		}
		if err == nil {
			_, err = in.created(0)
		}
		if err == nil || wire.FaultOf(err).Field != field {
			t.Errorf("%.100s: %v", body, err)
		}
	}
}

func TestTheWorkForMessagesGrowsAsTheyDo(t *testing.T) {
	allocations := func(n int) float64 {
		return testing.AllocsPerRun(1, func() {
			in := parsed(t, sameMessage(n))
			fresh := newMatch(in.texts(in.firstNew(), len(in.read)-1))
			for range n {
				fresh.next("hi")
			}
			if got := in.count(in.firstNew(), fresh.have); got != n-1 {
				t.Errorf("%d of %d messages are known", got, n)
			}
			if _, err := in.created(n - 1); err != nil {
				t.Error(err)
			}
		})
	}
	if few, many := allocations(500), allocations(1000); many > 3*few+100 {
		t.Errorf("500 messages make %v allocations, 1,000 make %v", few, many)
	}
}
