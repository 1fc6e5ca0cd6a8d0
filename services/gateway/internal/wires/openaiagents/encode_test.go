package openaiagents

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

var session = map[string]any{"id": "s", "agent": map[string]any{"id": "coder"}, "metadata": map[string]any{}}

func encode(enc *Encoder, log []*sessionv1.Event) (out []Event) {
	for _, e := range log {
		out = append(out, enc.Add(e)...)
	}
	return out
}

// told returns events in short: types, and what matters of them.
func told(events []Event) (out []string) {
	for _, e := range events {
		parts := []string{strings.TrimPrefix(e.Type(), eventPrefix)}
		for _, name := range []string{"output_index", "delta", "text", "error"} {
			if v, ok := e.Body[name]; ok && v != nil {
				b, _ := json.Marshal(v)
				parts = append(parts, string(b))
			}
		}
		if item, ok := e.Body["item"].(map[string]any); ok {
			for _, name := range []string{"type", "role", "phase", "status", "content", "summary", "command", "name", "arguments", "output", "error", "exit_code"} {
				if v, ok := item[name]; ok && v != nil {
					b, _ := json.Marshal(v)
					parts = append(parts, string(b))
				}
			}
		}
		if s, ok := e.Body["session"].(map[string]any); ok {
			if actions, _ := s["required_actions"].([]any); len(actions) > 0 {
				b, _ := json.Marshal(actions)
				parts = append(parts, string(b))
			}
		}
		if t, ok := e.Body["turn"].(map[string]any); ok && t["error"] != nil {
			b, _ := json.Marshal(t["error"])
			parts = append(parts, string(b))
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

const (
	queued  = `{"turnQueued":{"content":[{"text":{"text":"hi"}}]}}`
	started = `{"turnStarted":{}}`
	step1   = `{"stepStarted":{}}`
	ended   = `{"turnFinished":{"state":"TURN_STATE_COMPLETE"}}`
	bash    = `{"toolCallArguments":{"callId":"t1.1.0","tool":"Bash","argumentsJson":"{\"command\":\"ls\"}"}}`
	hi      = `turn.item.added "message" "user" "completed" [{"text":"hi","type":"input_text"}]`
)

var began = []string{"turn.created", "in_progress", "turn.in_progress", hi}

// answered is what is told of a message of the agent.
func answered(index int, phase string, pieces ...string) []string {
	text := fmt.Sprintf("%q", strings.Join(pieces, ""))
	out := []string{fmt.Sprintf(`turn.item.added %d "message" "assistant" "in_progress" []`, index), fmt.Sprintf("turn.content_part.added %d", index)}
	for _, p := range pieces {
		out = append(out, fmt.Sprintf("turn.output_text.delta %d %q", index, p))
	}
	return append(out, fmt.Sprintf("turn.output_text.done %d %s", index, text), fmt.Sprintf("turn.content_part.done %d", index),
		fmt.Sprintf(`turn.item.done %d "message" "assistant" %q "completed" [{"text":%s,"type":"output_text"}]`, index, phase, text))
}

func TestALogIsToldAsTheWireTellsIt(t *testing.T) {
	for name, c := range map[string]struct {
		log, client []string
		schema      bool
		want        [][]string
	}{
		"a plain turn": {
			log:  []string{queued, started, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"a"}}`, `{"textDelta":{"text":"b"}}`, `{"textFinished":{}}`, `{"stepFinished":{}}`, ended},
			want: [][]string{began, answered(0, "final_answer", "a", "b"), {"turn.completed", "idle"}},
		},
		"a step that starts again": {
			log: []string{queued, started, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"a"}}`, `{"stepRestarted":{"voidFirstSeq":"3","voidLastSeq":"5"}}`, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"b"}}`, `{"textFinished":{}}`, `{"stepFinished":{}}`, ended},
			want: [][]string{began, answered(0, "", "a")[:3], {`turn.item.done 0 "message" "assistant" "incomplete" [{"text":"a","type":"output_text"}]`},
				answered(1, "final_answer", "b"), {"turn.completed", "idle"}},
		},
		"a thought and a command": {
			log: []string{queued, started, step1, `{"thinkingStarted":{}}`, `{"thinkingDelta":{"text":"h"}}`, `{"thinkingFinished":{}}`, `{"textStarted":{"block":1}}`, `{"textDelta":{"block":1,"text":"a"}}`, `{"textFinished":{"block":1}}`,
				bash, `{"toolCallDecision":{"callId":"t1.1.0","decision":"DECISION_ALLOW"}}`, `{"toolCallOutputDelta":{"callId":"t1.1.0","data":"w6TD"}}`, `{"toolCallOutputDelta":{"callId":"t1.1.0","data":"tg=="}}`,
				`{"toolCallFinished":{"callId":"t1.1.0","tool":"Bash","outcome":"TOOL_OUTCOME_ERROR","content":[{"text":{"text":"Exit code 3\nx"}}]}}`, `{"stepFinished":{}}`, ended},
			want: [][]string{began,
				{`turn.item.added 0 "reasoning" "in_progress" []`, "turn.reasoning_summary_part.added 0", `turn.reasoning_summary_text.delta 0 "h"`, `turn.reasoning_summary_text.done 0 "h"`, "turn.reasoning_summary_part.done 0"},
				answered(1, "", "a")[:5], {`turn.item.done 0 "reasoning" "completed" [{"text":"h","type":"summary_text"}]`}, answered(1, "commentary", "a")[5:],
				{`turn.item.added 2 "command_execution" "in_progress" "ls"`, `agent.output.command_execution_output.delta 2 "ä"`, `agent.output.command_execution_output.delta 2 "ö"`,
					`turn.item.done 2 "command_execution" "failed" "ls" "Exit code 3\nx" 3`, "turn.completed", "idle"}},
		},
		"a call that a person must allow": {
			log: []string{queued, started, step1, bash, `{"toolCallDecision":{"callId":"t1.1.0","decision":"DECISION_ASK"}}`, `{"approvalRequested":{"callId":"t1.1.0","tool":"Bash","argumentsJson":"{\"command\":\"ls\"}","message":"May it?"}}`,
				`{"turnWaiting":{"callIds":["t1.1.0"]}}`, `{"approvalResolved":{"callId":"t1.1.0","approved":true}}`, `{"turnResumed":{}}`, `{"toolCallDecision":{"callId":"t1.1.0","decision":"DECISION_ALLOW"}}`,
				`{"toolCallFinished":{"callId":"t1.1.0","tool":"Bash","outcome":"TOOL_OUTCOME_OK","content":[{"text":{"text":"x"}}]}}`, `{"stepFinished":{}}`, ended},
			want: [][]string{began, {`turn.item.added 0 "command_execution" "in_progress" "ls"`,
				`requires_action [{"request":{"arguments":{"command":"ls"},"message":"May it?","name":"Bash","server_label":"fairlead","type":"mcp_tool_call"},"request_id":"mcpr_t1.1.0","turn_id":"t1","type":"mcp_approval_request"}]`,
				"in_progress", `turn.item.done 0 "command_execution" "completed" "ls" "x" 0`, "turn.completed", "idle"}},
		},
		"a tool of the client is told when its result is taken, and one of a server when it runs": {
			client: []string{"weather"},
			log: []string{queued, started, step1, `{"toolCallArguments":{"callId":"c1","tool":"weather","argumentsJson":"{\"n\":9007199254740993}"}}`, `{"toolCallArguments":{"callId":"c2","tool":"mcp__git__log","argumentsJson":"{}"}}`,
				`{"toolCallDecision":{"callId":"c2","decision":"DECISION_ALLOW"}}`, `{"toolCallFinished":{"callId":"c2","outcome":"TOOL_OUTCOME_ERROR","content":[{"text":{"text":"no"}}]}}`,
				`{"turnWaiting":{"callIds":["c1"]}}`, `{"toolCallFinished":{"callId":"c1","outcome":"TOOL_OUTCOME_OK","content":[{"text":{"text":"21"}}]}}`, `{"turnResumed":{}}`, `{"stepFinished":{}}`, ended},
			want: [][]string{began, {`turn.item.added 0 "mcp_call" "in_progress" "log" {}`, `turn.item.done 0 "mcp_call" "failed" "log" {} "no"`, `turn.item.added 1 "function_call" "in_progress" "weather" {"n":9007199254740993}`,
				`requires_action [{"arguments":{"n":9007199254740993},"call_id":"c1","name":"weather","turn_id":"t1","type":"function_call"}]`,
				`turn.item.done 1 "function_call" "completed" "weather" {"n":9007199254740993}`, `turn.item.added "function_call_output" "completed" "21"`, "in_progress", "turn.completed", "idle"}},
		},
		"a question is a function": {
			log: []string{queued, started, step1, `{"toolCallArguments":{"callId":"t1.1.0","tool":"AskUserQuestion","argumentsJson":"{}"}}`, `{"toolCallDecision":{"callId":"t1.1.0","decision":"DECISION_ALLOW"}}`,
				`{"questionRequested":{"callId":"t1.1.0","question":{"id":"1","message":"Log in.","url":"https://x.example"}}}`, `{"turnWaiting":{"callIds":["t1.1.0"]}}`,
				`{"questionResolved":{"callId":"t1.1.0","questionId":"1","action":"QUESTION_ACTION_DECLINE"}}`, `{"turnResumed":{}}`,
				`{"toolCallFinished":{"callId":"t1.1.0","tool":"AskUserQuestion","outcome":"TOOL_OUTCOME_OK","content":[{"text":{"text":"x"}}]}}`, `{"stepFinished":{}}`, ended},
			want: [][]string{began, {`turn.item.added 0 "mcp_call" "in_progress" "AskUserQuestion" {}`,
				`turn.item.added 1 "function_call" "in_progress" "AskUserQuestion" {"message":"Log in.","url":"https://x.example"}`,
				`requires_action [{"arguments":{"message":"Log in.","url":"https://x.example"},"call_id":"t1.1.0/1","name":"AskUserQuestion","turn_id":"t1","type":"function_call"}]`,
				`turn.item.done 1 "function_call" "failed" "AskUserQuestion" {"message":"Log in.","url":"https://x.example"}`, `turn.item.added "function_call_output" "failed" "There is no answer."`,
				"in_progress", `turn.item.done 0 "mcp_call" "completed" "AskUserQuestion" {} "x"`, "turn.completed", "idle"}},
		},
		"a message that steers": {
			log:  []string{queued, started, step1, "@t2 " + queued, "@t2 " + `{"turnSteered":{"into":"sessions/s/turns/t1"}}`, ended, "@t2 " + ended},
			want: [][]string{began, {hi, "turn.completed", "idle"}},
		},
		"an interrupt, with another turn behind it": {
			log:  []string{queued, started, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"a"}}`, "@t2 " + queued, `{"turnFinished":{"state":"TURN_STATE_INTERRUPTED"}}`, "@t2 " + started, "@t2 " + ended},
			want: [][]string{began, answered(0, "", "a")[:3], {`turn.item.done 0 "message" "assistant" "incomplete" [{"text":"a","type":"output_text"}]`, "turn.cancelled"}, began, {"turn.completed", "idle"}},
		},
		"a turn that a limit ends, and a warning": {
			log:  []string{queued, started, `{"warning":{"reason":"MODEL_RETRY","message":"again"}}`, `{"turnFinished":{"state":"TURN_STATE_PARTIAL","error":{"reason":"BUDGET_EXHAUSTED","message":"no more"}}}`},
			want: [][]string{began, {`error {"code":"model_retry","message":"again","param":null,"type":"warning"}`, `turn.failed {"code":"session_budget_exceeded","message":"no more"}`, "idle"}},
		},
		"a subagent": {
			log: []string{queued, started, step1, `{"toolCallArguments":{"callId":"c1","tool":"Task","argumentsJson":"{}"}}`, `{"toolCallDecision":{"callId":"c1","decision":"DECISION_ALLOW"}}`,
				`{"subagentStarted":{"callId":"c1","session":"sessions/x","subagent":"leaf"}}`, `{"subagentEvent":{"callId":"c1","event":{"textDelta":{"text":"a"}}}}`, `{"subagentFinished":{"callId":"c1","session":"sessions/x"}}`,
				`{"toolCallFinished":{"callId":"c1","tool":"Task","outcome":"TOOL_OUTCOME_OK","content":[{"text":{"text":"a"}}]}}`, `{"stepFinished":{}}`, ended},
			want: [][]string{began, {`turn.item.added 0 "mcp_call" "in_progress" "Task" {}`, "subagent.created", "subagent.active", "subagent.closed", `turn.item.done 0 "mcp_call" "completed" "Task" {} "a"`, "turn.completed", "idle"}},
		},
		"output with a schema": {
			schema: true,
			log:    []string{queued, started, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"a"}}`, `{"textFinished":{}}`, `{"stepFinished":{}}`, `{"turnFinished":{"state":"TURN_STATE_COMPLETE","outputJson":"{}"}}`},
			want:   [][]string{began, answered(0, "commentary", "a"), {`turn.item.added 1 "message" "assistant" "final_answer" "completed" [{"text":"{}","type":"output_text"}]`, `turn.item.done 1 "message" "assistant" "final_answer" "completed" [{"text":"{}","type":"output_text"}]`, "turn.completed", "idle"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			enc := NewEncoder(session, c.client)
			enc.schema = c.schema
			if d := cmp.Diff(slices.Concat(c.want...), told(encode(enc, wiretest.Log(t, c.log...)))); d != "" {
				t.Error(d)
			}
		})
	}
}

// randomLog is a log of turns whose steps start again, stream text in pieces, run commands and wait.
func randomLog(t *testing.T, r *rand.Rand) []*sessionv1.Event {
	t.Helper()
	log := []string{`{"sessionCreated":{}}`}
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
					kind := []string{"text", "thinking"}[r.IntN(2)]
					add(turn, fmt.Sprintf(`{"%sStarted":{"block":%d}}`, kind, b))
					for range r.IntN(4) {
						add(turn, fmt.Sprintf(`{"%sDelta":{"block":%d,"text":"%c%c"}}`, kind, b, 'a'+rune(r.IntN(26)), 'à'+rune(r.IntN(20))))
					}
					add(turn, fmt.Sprintf(`{"%sFinished":{"block":%d}}`, kind, b))
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
				for range r.IntN(4) {
					add(turn, fmt.Sprintf(`{"toolCallOutputDelta":{"callId":%q,"data":%q}}`, call, []string{"YQ==", "w6TD", "tmI=", "4oKs", "w7Y="}[r.IntN(5)]))
				}
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
		if last := len(out) - 1; last >= 0 && r.IntN(2) == 0 {
			if m := merged(out[last], e); m != nil {
				out[last] = m
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

func merged(a, b *sessionv1.Event) *sessionv1.Event {
	m := &sessionv1.Event{FirstSeq: a.GetFirstSeq(), Seq: b.GetSeq(), Time: b.GetTime(), Turn: b.GetTurn()}
	switch {
	case a.GetTextDelta() != nil && b.GetTextDelta() != nil:
		m.Body = &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Block: b.GetTextDelta().GetBlock(), Text: a.GetTextDelta().GetText() + b.GetTextDelta().GetText()}}
	case a.GetThinkingDelta() != nil && b.GetThinkingDelta() != nil:
		m.Body = &sessionv1.Event_ThinkingDelta{ThinkingDelta: &sessionv1.ThinkingDelta{Block: b.GetThinkingDelta().GetBlock(), Text: a.GetThinkingDelta().GetText() + b.GetThinkingDelta().GetText()}}
	case a.GetToolCallOutputDelta() != nil && b.GetToolCallOutputDelta() != nil:
		m.Body = &sessionv1.Event_ToolCallOutputDelta{ToolCallOutputDelta: &sessionv1.ToolCallOutputDelta{
			CallId: b.GetToolCallOutputDelta().GetCallId(), Data: slices.Concat(a.GetToolCallOutputDelta().GetData(), b.GetToolCallOutputDelta().GetData()),
		}}
	default:
		return nil
	}
	return m
}

// reduced is what a client has of a stream: every item as it was last, its text from deltas, and the order of the rest.
type reduced struct {
	Items map[string]string
	Texts map[string]string
	Order []string
}

// read reduces frames. It stops after one, counted from 0, and returns the id of that one.
func (c *reduced) read(t *testing.T, text string, stop int) (id string) {
	t.Helper()
	for i, one := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var data string
		for _, line := range strings.Split(one, "\n") {
			if rest, ok := strings.CutPrefix(line, "id: "); ok {
				id = rest
			}
			if rest, ok := strings.CutPrefix(line, "data: "); ok {
				data = rest
			}
		}
		if data == "" {
			continue
		}
		var body struct {
			Type, Delta string
			Item        json.RawMessage
			ItemID      string `json:"item_id"`
			EventID     string `json:"event_id"`
		}
		if err := json.Unmarshal([]byte(data), &body); err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(body.Type, ".delta"):
			c.Texts[body.ItemID] += body.Delta
		case len(body.Item) > 0:
			var it struct{ ID string }
			_ = json.Unmarshal(body.Item, &it)
			c.Items[it.ID] = string(body.Item)
		default:
			c.Order = append(c.Order, body.EventID+" "+body.Type)
		}
		if i == stop {
			return id
		}
	}
	return id
}

func fresh() *reduced { return &reduced{Items: map[string]string{}, Texts: map[string]string{}} }

func framesOf(log []*sessionv1.Event, after place) string {
	s := &streaming{enc: NewEncoder(session, nil), after: after, open: true}
	var out []byte
	for _, e := range log {
		out, _, _ = s.Event(out, e)
	}
	return string(out)
}

func TestAnyCutOfTheLogResumesToTheSame(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		log := randomLog(t, r)
		whole := fresh()
		text := framesOf(log, place{part: -1})
		whole.read(t, text, -1)
		again := framesOf(log, place{part: -1})
		if again != text {
			t.Fatalf("seed %d: the same log has other bytes", seed)
		}
		// A client is cut off after any event, any number of times, and deltas are merged meanwhile.
		got, after := fresh(), place{part: -1}
		for range 1 + r.IntN(4) {
			log = mergeDeltas(log, r)
			rest := framesOf(log, after)
			n := strings.Count(rest, "\n\n")
			if n == 0 {
				break
			}
			id := got.read(t, rest, r.IntN(n))
			var ok bool
			if after, ok = placeOf(id); !ok {
				t.Fatalf("seed %d: the id %q", seed, id)
			}
		}
		got.read(t, framesOf(mergeDeltas(log, r), after), -1)
		if d := cmp.Diff(whole, got); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
		ids := map[string]bool{}
		for _, e := range encode(NewEncoder(session, nil), log) {
			id, _ := e.Body["event_id"].(string)
			if ids[id] || id == "" {
				t.Fatalf("seed %d: the id %q of an event is there twice", seed, id)
			}
			ids[id] = true
		}
		checkList(t, seed, log, whole)
	}
}

// checkList checks that the list has what a stream has said, but for steps that began again.
func checkList(t *testing.T, seed uint64, log []*sessionv1.Event, whole *reduced) {
	t.Helper()
	enc := NewEncoder(session, nil)
	events := encode(enc, log)
	had := map[string]bool{}
	for _, it := range itemsOf(enc, events) {
		b, _ := json.Marshal(it.body)
		if had[it.id] || whole.Items[it.id] != string(b) {
			t.Fatalf("seed %d: the list has %s, the stream %s", seed, b, whole.Items[it.id])
		}
		had[it.id] = true
	}
	for id, text := range whole.Items {
		if !had[id] && !strings.Contains(text, `"status":"incomplete"`) {
			t.Fatalf("seed %d: the list has no %s", seed, text)
		}
	}
}

func TestAMessageThatIsBeingMadeIsListedWithWhatThereIs(t *testing.T) {
	enc := NewEncoder(session, nil)
	items := itemsOf(enc, encode(enc, wiretest.Log(t, queued, started, step1, `{"textStarted":{}}`, `{"textDelta":{"text":"so far"}}`)))
	if b, _ := json.Marshal(items[1].body); len(items) != 2 || !strings.Contains(string(b), `"so far"`) || !strings.Contains(string(b), inProgress) {
		t.Errorf("the items are %v", items)
	}
}

func TestAPageComesAfterItsCursor(t *testing.T) {
	whole := func() (out []entry) {
		for _, id := range []string{"00000000000000000000000001", "00000000000000000000000003", "plain"} {
			out = append(out, entry{id, map[string]any{"id": id}})
		}
		return out
	}
	for _, c := range []struct {
		l    list
		want string
	}{
		{list{limit: 2}, "[map[id:plain] map[id:00000000000000000000000003]] true"},
		{list{limit: 2, after: "plain"}, "[map[id:00000000000000000000000003] map[id:00000000000000000000000001]] false"},
		{list{limit: 2, oldest: true, after: "00000000000000000000000002"}, "[map[id:00000000000000000000000003] map[id:plain]] false"},
		{list{limit: 2, after: "gone"}, "[] false"},
	} {
		got, err := c.l.page(whole())
		m, _ := got.(map[string]any)
		if err != nil || fmt.Sprint(m["data"], m["has_more"]) != c.want {
			t.Errorf("%+v: %v, want %s", c.l, m, c.want)
		}
	}
}
