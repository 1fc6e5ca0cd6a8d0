package managed

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire/wiretest"
)

// told returns what an encoder makes of a log, in short: types, and what matters of them.
func told(events []Event) []string {
	var out []string
	for _, e := range events {
		parts := []string{e.Type()}
		for _, name := range []string{"content", "name", "tool_use_id", "custom_tool_use_id", "evaluated_permission", "result", "stop_reason", "error", "is_error", "delta"} {
			if v, ok := e.Body[name]; ok {
				b, _ := json.Marshal(v)
				parts = append(parts, string(b))
			}
		}
		if e.Type() == "user.message" && e.Body["processed_at"] == nil {
			parts = append(parts, "queued")
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

func encode(log []*sessionv1.Event, custom ...string) (out []Event) {
	enc := NewEncoder(custom)
	for _, e := range log {
		out = append(out, enc.Add(e)...)
	}
	return out
}

const (
	queued  = `{"turnQueued":{"content":[{"text":{"text":"hi"}}]}}`
	started = `{"turnStarted":{}}`
	step1   = `{"stepStarted":{}}`
	ended   = `{"turnFinished":{"state":"TURN_STATE_COMPLETE"}}`
	hi      = `user.message [{"text":"hi","type":"text"}]`
	idle    = `session.status_idle {"type":"end_turn"}`
)

func TestALogIsToldAsTheWireTellsIt(t *testing.T) {
	for name, c := range map[string]struct {
		log, want []string
		custom    []string
	}{
		"a plain turn": {
			log: []string{queued, started, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"a"}}`, `{"textDelta":{"text":"b"}}`, `{"textFinished":{}}`, `{"stepFinished":{}}`, ended},
			want: []string{
				hi + " queued", "session.status_running", hi, "span.model_request_start", "event_start",
				`event_delta {"content":{"text":"a","type":"text"},"index":0,"type":"content_delta"}`, `event_delta {"content":{"text":"b","type":"text"},"index":0,"type":"content_delta"}`,
				`agent.message [{"text":"ab","type":"text"}]`, "span.model_request_end false", idle,
			},
		},
		"a step that starts again says nothing twice": {
			log: []string{queued, started, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"a"}}`, `{"stepRestarted":{"voidFirstSeq":"3","voidLastSeq":"5"}}`, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"b"}}`, `{"stepFinished":{}}`, ended},
			want: []string{
				hi + " queued", "session.status_running", hi, "span.model_request_start", "event_start", `event_delta {"content":{"text":"a","type":"text"},"index":0,"type":"content_delta"}`,
				"span.model_request_end true", "span.model_request_start", "event_start", `event_delta {"content":{"text":"b","type":"text"},"index":0,"type":"content_delta"}`,
				`agent.message [{"text":"b","type":"text"}]`, "span.model_request_end false", idle,
			},
		},
		"a call that a person must allow": {
			log: []string{
				queued, started, step1, `{"toolCallArguments":{"callId":"t1.1.0","tool":"Bash","argumentsJson":"{\"command\":\"ls\"}"}}`, `{"toolCallDecision":{"callId":"t1.1.0","decision":"DECISION_ASK"}}`,
				`{"approvalRequested":{"callId":"t1.1.0"}}`, `{"turnWaiting":{"callIds":["t1.1.0"]}}`, `{"approvalResolved":{"callId":"t1.1.0","approved":true}}`, `{"turnResumed":{}}`,
				`{"toolCallDecision":{"callId":"t1.1.0","decision":"DECISION_ALLOW"}}`, `{"toolCallFinished":{"callId":"t1.1.0","tool":"Bash","outcome":"TOOL_OUTCOME_OK","content":[{"text":{"text":"x"}}]}}`, `{"stepFinished":{}}`, ended,
			},
			want: []string{
				hi + " queued", "session.status_running", hi, "span.model_request_start", `agent.tool_use "bash" "ask"`,
				`session.status_idle {"event_ids":["sevt_c_t1.1.0"],"type":"requires_action"}`, `user.tool_confirmation "sevt_c_t1.1.0" "allow"`, "session.status_running",
				`agent.tool_result [{"text":"x","type":"text"}] "sevt_c_t1.1.0" false`, "span.model_request_end false", idle,
			},
		},
		"a tool of the client, and one of an MCP server": {
			custom: []string{"weather"},
			log: []string{
				queued, started, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"a"}}`,
				`{"toolCallArguments":{"callId":"c1","tool":"weather","argumentsJson":"{}"}}`, `{"toolCallArguments":{"callId":"c2","tool":"mcp__git__log","argumentsJson":"{}"}}`,
				`{"toolCallDecision":{"callId":"c2","decision":"DECISION_ALLOW"}}`, `{"toolCallFinished":{"callId":"c2","outcome":"TOOL_OUTCOME_ERROR"}}`,
				`{"turnWaiting":{"callIds":["c1"]}}`, `{"toolCallFinished":{"callId":"c1","outcome":"TOOL_OUTCOME_OK","content":[{"text":{"text":"21"}}]}}`, `{"turnResumed":{}}`, `{"stepFinished":{}}`, ended,
			},
			want: []string{
				hi + " queued", "session.status_running", hi, "span.model_request_start", "event_start", `event_delta {"content":{"text":"a","type":"text"},"index":0,"type":"content_delta"}`,
				`agent.message [{"text":"a","type":"text"}]`, `agent.custom_tool_use "weather"`, `agent.mcp_tool_use "log" "allow"`, `agent.mcp_tool_result [] true`,
				`session.status_idle {"event_ids":["sevt_c_c1"],"type":"requires_action"}`, `user.custom_tool_result [{"text":"21","type":"text"}] "sevt_c_c1" false`, "session.status_running",
				"span.model_request_end false", idle,
			},
		},
		"a question, which is told once": {
			log: []string{
				queued, started, step1, `{"toolCallArguments":{"callId":"t1.1.0","tool":"AskUserQuestion","argumentsJson":"{}"}}`, `{"toolCallDecision":{"callId":"t1.1.0","decision":"DECISION_ALLOW"}}`,
				`{"questionRequested":{"callId":"t1.1.0","tool":"AskUserQuestion","question":{"id":"1","items":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}}}`, `{"turnWaiting":{"callIds":["t1.1.0"]}}`, `{"turnWaiting":{"callIds":["t1.1.0"]}}`,
				`{"questionResolved":{"callId":"t1.1.0","questionId":"1","action":"QUESTION_ACTION_ACCEPT","contentJson":"{\"answers\":{\"Which?\":\"B\"}}"}}`, `{"turnResumed":{}}`, `{"stepFinished":{}}`, ended,
			},
			want: []string{
				hi + " queued", "session.status_running", hi, "span.model_request_start", `agent.tool_use "AskUserQuestion" "allow"`, `agent.custom_tool_use "AskUserQuestion"`,
				`session.status_idle {"event_ids":["sevt_c_t1.1.0/1"],"type":"requires_action"}`, `session.status_idle {"event_ids":["sevt_c_t1.1.0/1"],"type":"requires_action"}`,
				`user.custom_tool_result [{"text":"{\"answers\":{\"Which?\":\"B\"}}","type":"text"}] "sevt_c_t1.1.0/1" false`, "session.status_running", "span.model_request_end false", idle,
			},
		},
		"an interrupt, with another message behind it": {
			log: []string{
				queued, started, step1, "@t2 " + queued, `{"turnFinished":{"state":"TURN_STATE_INTERRUPTED","error":{"reason":"INTERRUPTED"}}}`, "@t2 " + started, "@t2 " + ended,
			},
			want: []string{
				hi + " queued", "session.status_running", hi, "span.model_request_start", hi + " queued", "span.model_request_end true", "user.interrupt", "session.status_running", hi, idle,
			},
		},
		"a turn that fails": {
			log:  []string{queued, started, `{"turnFinished":{"state":"TURN_STATE_FAILED","error":{"reason":"MODEL_AUTHENTICATION","message":"no key"}}}`},
			want: []string{hi + " queued", "session.status_running", hi, `session.error {"message":"no key","retry_status":{"type":"exhausted"},"type":"model_request_failed_error"}`, `session.status_idle {"type":"retries_exhausted"}`},
		},
		"a budget": {
			log:  []string{queued, started, `{"turnFinished":{"state":"TURN_STATE_PARTIAL","error":{"reason":"BUDGET_EXHAUSTED","message":"no more"}}}`},
			want: []string{hi + " queued", "session.status_running", hi, `session.status_idle {"type":"budget_reached"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, told(encode(wiretest.Log(t, c.log...), c.custom...))); d != "" {
				t.Error(d)
			}
		})
	}
}

// randomLog is a log of turns whose steps start again, stream text in pieces, call tools and wait.
func randomLog(t *testing.T, r *rand.Rand) []*sessionv1.Event {
	t.Helper()
	var log []string
	add := func(turn, body string) { log = append(log, "@"+turn+" "+body) }
	for n := range 1 + r.IntN(3) {
		turn := fmt.Sprintf("t%d", n)
		add(turn, queued)
		add(turn, started)
		for s := range 1 + r.IntN(3) {
			first := len(log) + 1
			for again := r.IntN(2); again >= 0; again-- {
				add(turn, step1)
				for b := range r.IntN(3) {
					add(turn, fmt.Sprintf(`{"textStarted":{"block":%d}}`, b))
					for range r.IntN(4) {
						add(turn, fmt.Sprintf(`{"textDelta":{"block":%d,"text":"%c"}}`, b, 'a'+rune(r.IntN(26))))
					}
					add(turn, fmt.Sprintf(`{"textFinished":{"block":%d}}`, b))
				}
				if again > 0 {
					add(turn, fmt.Sprintf(`{"stepRestarted":{"voidFirstSeq":"%d","voidLastSeq":"%d"}}`, first, len(log)))
				}
			}
			call := fmt.Sprintf("%s.%d.0", turn, s)
			if r.IntN(2) == 0 {
				add(turn, fmt.Sprintf(`{"toolCallArguments":{"callId":%q,"tool":"Bash","argumentsJson":"{}"}}`, call))
				add(turn, fmt.Sprintf(`{"toolCallDecision":{"callId":%q,"decision":"DECISION_ASK"}}`, call))
				add(turn, fmt.Sprintf(`{"turnWaiting":{"callIds":[%q]}}`, call))
				add(turn, `{"turnResumed":{}}`)
				add(turn, fmt.Sprintf(`{"toolCallFinished":{"callId":%q,"outcome":"TOOL_OUTCOME_OK"}}`, call))
			}
			add(turn, `{"stepFinished":{}}`)
		}
		add(turn, ended)
	}
	return wiretest.Log(t, log...)
}

// mergeDeltas joins neighboring deltas as the store does: the merged event covers the numbers of both.
func mergeDeltas(log []*sessionv1.Event, r *rand.Rand) (out []*sessionv1.Event) {
	for _, e := range log {
		if last := len(out) - 1; last >= 0 && r.IntN(2) == 0 && e.GetTextDelta() != nil && out[last].GetTextDelta() != nil {
			out[last] = &sessionv1.Event{
				FirstSeq: out[last].GetFirstSeq(), Seq: e.GetSeq(), Time: e.GetTime(), Turn: e.GetTurn(),
				Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Block: e.GetTextDelta().GetBlock(), Text: out[last].GetTextDelta().GetText() + e.GetTextDelta().GetText()}},
			}
			continue
		}
		out = append(out, e)
	}
	return out
}

func stored(events []Event) (out []string) {
	for _, e := range events {
		if !e.Preview {
			b, _ := json.Marshal(e.Body)
			out = append(out, place{e.Seq, e.Part}.String()+" "+string(b))
		}
	}
	return out
}

// read returns what a client has after a stream: the frames with ids, in short, and what previews add up to.
func read(t *testing.T, text string) (ids []string, previews map[string]string) {
	t.Helper()
	previews = map[string]string{}
	for _, frame := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var id string
		for _, line := range strings.Split(frame, "\n") {
			if rest, ok := strings.CutPrefix(line, "id: "); ok {
				id = rest
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			var body struct {
				Type    string `json:"type"`
				ID      string `json:"event_id"`
				Event   struct{ ID string }
				Delta   struct{ Content struct{ Text string } }
				Content []struct{ Text string }
			}
			if err := json.Unmarshal([]byte(data), &body); err != nil {
				t.Fatal(err)
			}
			switch body.Type {
			case "event_start":
				previews[body.Event.ID] = ""
			case "event_delta":
				if _, ok := previews[body.ID]; !ok {
					t.Errorf("a delta of %s comes without its start", body.ID)
				}
				previews[body.ID] += body.Delta.Content.Text
			default:
				ids = append(ids, id+" "+data)
			}
		}
	}
	return ids, previews
}

func TestAnyCutOfTheLogResumesToTheSame(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		log := randomLog(t, r)
		all := stored(encode(log))
		if d := cmp.Diff(all, stored(encode(mergeDeltas(slices.Clone(log), r)))); d != "" {
			t.Fatalf("seed %d: merged deltas change what is stored: %s", seed, d)
		}
		// A client resumes after any event that it has seen, or opens the stream at any time.
		cut := r.IntN(len(all))
		var after place
		after, _ = placeOf(strings.Fields(all[cut])[0])
		s := &streaming{enc: NewEncoder(nil), after: after, deltas: []string{"agent.message"}}
		var out []byte
		for _, e := range mergeDeltas(slices.Clone(log), r) {
			out, _, _ = s.Event(out, e)
		}
		got, previews := read(t, string(out))
		if d := cmp.Diff(all[cut+1:], got, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); d != "" && len(all) > cut+1 {
			t.Fatalf("seed %d, after %v: %s", seed, after, d)
		}
		for _, e := range encode(log) {
			text, ok := previews[e.ID()]
			if !ok || e.Type() != "agent.message" {
				continue
			}
			b, _ := json.Marshal(texts(text))
			if want, _ := json.Marshal(e.Body["content"]); string(want) != string(b) {
				t.Fatalf("seed %d: the preview of %s is %s, want %s", seed, e.ID(), b, want)
			}
		}
		// The list has what the stream had, each event once.
		list := once(NewEncoder(nil), log)
		seen := map[string]bool{}
		for _, e := range list {
			if seen[e.ID()] {
				t.Fatalf("seed %d: %s is twice in the list", seed, e.ID())
			}
			seen[e.ID()] = true
		}
		for _, e := range encode(log) {
			if !e.Preview && !seen[e.ID()] {
				t.Fatalf("seed %d: %s is on the stream and not in the list", seed, e.ID())
			}
		}
	}
}
