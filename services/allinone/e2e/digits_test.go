package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

const (
	// digits are numbers that a float64 would change, in an order that is not that of the alphabet.
	digits = `{"z": 9007199254740993, "big": 123456789012345678901234567890, "long": 0.1000000000000000055511151231257827, "huge": 1e400, "list": [-0, 1.0]}`
	// exactSchema is a schema of a client's tool, exactAgent an agent whose output has one.
	exactSchema = `{ "type": "object", "properties": {"z": {"minimum": 9007199254740993, "multipleOf": 1.0}, "huge": {"const": 1e400}} }`
	exactAgent  = `
  exact:
    description: counts
    prompt: Count.
    profile: full
    tools: [Bash]
    output-schema:
      type: object
      required: [z]
      properties:
        z: {minimum: 9007199254740993, exclusiveMaximum: 9007199254740994}
        big: {const: 123456789012345678901234567890}
        long: {enum: [0.1000000000000000055511151231257827]}
        huge: {minimum: 1e400}
        list: {const: [-0, 1.0]}
`
	outputSchema = `{"type":"object","required":["z"],"properties":{"z":{"minimum":9007199254740993,"exclusiveMaximum":9007199254740994},` +
		`"big":{"const":123456789012345678901234567890},"long":{"enum":[0.1000000000000000055511151231257827]},"huge":{"minimum":1e400},"list":{"const":[-0,1.0]}}}`
)

// counting calls a client's tool, hands over an output that is one too low, and then the right one.
func counting(r modeltest.Request) modeltest.Step {
	finish := func(output string) string {
		return `{"request_status":"COMPLETE","summary":"Counted.","output":` + output + `}`
	}
	switch {
	case r.Step == 1 && r.UserText == "count":
		return modeltest.Step{Calls: []modeltest.Call{{ID: "call_1", Name: "exact", Input: digits}}}
	case r.Step == 2:
		return modeltest.Step{Calls: []modeltest.Call{{ID: "call_2", Name: "finish", Input: finish(strings.Replace(digits, "993", "992", 1))}}}
	default:
		return modeltest.Step{Calls: []modeltest.Call{{Name: "finish", Input: finish(digits)}}}
	}
}

func TestEveryDigitArrives(t *testing.T) {
	t.Parallel()
	for model, serve := range map[string]func(testing.TB, modeltest.Script) *modeltest.Server{"anthropic:claude-sonnet-4-6": modeltest.Anthropic, "openai:gpt-4.1": modeltest.OpenAI} {
		kind, _, _ := strings.Cut(model, ":")
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := serve(t, counting)
			env := []string{"FAIRLEAD_MODEL=" + model, strings.ToUpper(kind) + "_API_KEY=" + modeltest.Key, strings.ToUpper(kind) + "_BASE_URL=" + p.URL}
			s := start(t, options{env: env, agents: exactAgent})
			session := s.countedSession(t)
			if refused := p.Refused(); len(refused) > 0 {
				t.Fatalf("the provider refused %q", refused)
			}
			checkRequests(t, p.Requests())
			s.checkDigits(t, session)
			before := s.log(t, session)
			s.stop(t)
			s = s.restart(t)
			if after := s.log(t, session); !slices.Equal(after, before) {
				t.Errorf("the log after a restart differs:\n%v\nwas\n%v", after, before)
			}
			s.checkDigits(t, session)
			s.checkDigits(t, s.forked(t, session))
			s.checkDigits(t, s.imported(t, session))
			if refused := p.Refused(); len(refused) > 0 {
				t.Errorf("the provider refused %q", refused)
			}
		})
	}
}

// countedSession runs a turn in which the client runs a tool.
func (s *system) countedSession(t *testing.T) string {
	t.Helper()
	r := s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"exact","labels":{"number":"123456789012345678901234567890","small":"1.0"}}`)
	var created struct{ Name string }
	if err := json.Unmarshal([]byte(r.body), &created); err != nil || created.Name == "" {
		t.Fatalf("create a session: %d %s", r.code, r.body)
	}
	turn := `{"text":"count","clientTools":[{"name":"exact","description":"counts exactly","inputSchemaJson":` + strconv.Quote(exactSchema) + `}]}`
	frames := s.stream(t, http.MethodPost, "/v1/"+created.Name+"/turns:stream", turn, func(f frame) bool {
		if f.event != "turn.waiting" {
			return true
		}
		var e struct{ TurnWaiting struct{ CallIDs []string } }
		if err := json.Unmarshal([]byte(f.data), &e); err != nil || len(e.TurnWaiting.CallIDs) != 1 {
			t.Fatalf("the turn waits: %s (%v)", f.data, err)
		}
		r := s.call(t, http.MethodPost, "/v1/"+created.Name+"/toolResults",
			`{"callId":"`+e.TurnWaiting.CallIDs[0]+`","content":[{"text":{"text":`+strconv.Quote(digits)+`}}]}`)
		if r.code != http.StatusOK {
			t.Errorf("the client's result: %d %s", r.code, r.body)
		}
		return true
	})
	if got := last(t, frames, "COMPLETE").field("turnFinished", "outputJson"); got != digits {
		t.Errorf("the output is %s", got)
	}
	return created.Name
}

// checkRequests checks what the provider was sent: schemas, arguments and the client's result.
func checkRequests(t *testing.T, all []modeltest.Request) {
	t.Helper()
	if len(all) != 3 {
		t.Fatalf("the provider got %d requests, want 3", len(all))
	}
	compact := func(s string) string { return strings.ReplaceAll(s, " ", "") }
	for _, want := range []string{compact(exactSchema), outputSchema} {
		if raw := string(all[0].Raw); !strings.Contains(raw, want) {
			t.Errorf("the first request has no %s: %s", want, raw)
		}
	}
	arguments, quoted := compact(digits), strconv.Quote(compact(digits))
	if raw := string(all[1].Raw); !strings.Contains(raw, `"input":`+arguments) && !strings.Contains(raw, `"arguments":`+quoted) {
		t.Errorf("the second request does not repeat the arguments: %s", raw)
	}
	if all[1].LastResult != digits {
		t.Errorf("the client's result reached the model as %s", all[1].LastResult)
	}
	if !strings.Contains(all[2].LastResult, "minimum") {
		t.Errorf("an output below the minimum by one is told as %q", all[2].LastResult)
	}
}

// checkDigits reads the conversation in every way.
func (s *system) checkDigits(t *testing.T, session string) {
	t.Helper()
	arguments, text := `"argumentsJson":`+strconv.Quote(digits), `"text":`+strconv.Quote(digits)
	for path, want := range map[string][]string{
		"/v1/" + session:               {`"number":"123456789012345678901234567890"`, `"small":"1.0"`},
		"/v1/" + session + "/messages": {arguments, text},
		"/v1/" + session + ":export":   {arguments, text},
		"/v1/agents/exact":             {`"outputSchemaJson":` + strconv.Quote(outputSchema)},
	} {
		r := s.call(t, http.MethodGet, path, "")
		for _, w := range want {
			if r.code != http.StatusOK || !strings.Contains(r.body, w) {
				t.Errorf("GET %s has no %s: %d %s", path, w, r.code, r.body)
			}
		}
	}
}

// log reads the session's log from its beginning, over SSE and over gRPC, and checks the turn in it.
func (s *system) log(t *testing.T, session string) []frame {
	t.Helper()
	frames := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool { return f.event != "turn.finished" })
	at := slices.IndexFunc(frames, func(f frame) bool { return f.event == "tool_call.arguments" })
	if at < 0 || frames[at].field("toolCallArguments", "argumentsJson") != digits {
		t.Errorf("the arguments are %v", frames)
	}
	end := last(t, frames, "COMPLETE")
	r := s.call(t, http.MethodGet, "/v1/"+end.field("turn"), "")
	if !strings.Contains(r.body, `"outputJson":`+strconv.Quote(digits)) {
		t.Errorf("the turn is %d %s", r.code, r.body)
	}
	s.checkGRPC(t, session)
	return frames
}

func (s *system) checkGRPC(t *testing.T, session string) {
	t.Helper()
	stream, err := sessionv1.NewSessionServiceClient(s.dial(t, s.grpc)).StreamEvents(t.Context(), &sessionv1.StreamEventsRequest{Parent: session})
	if err != nil {
		t.Fatal(err)
	}
	var arguments []string
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if a := m.GetEvent().GetToolCallArguments(); a != nil {
			arguments = append(arguments, a.ArgumentsJson)
		}
		if end := m.GetEvent().GetTurnFinished(); end != nil {
			if len(arguments) == 0 || arguments[0] != digits || end.OutputJson != digits {
				t.Errorf("over gRPC the arguments are %q, the output %s", arguments, end.OutputJson)
			}
			return
		}
	}
}

// forked forks the session, sends the fork a message, and returns it.
func (s *system) forked(t *testing.T, session string) string {
	t.Helper()
	r := s.call(t, http.MethodPost, "/v1/"+session+":fork", `{}`)
	return s.again(t, r)
}

// imported exports the session, imports the file, sends the copy a message, and returns it.
func (s *system) imported(t *testing.T, session string) string {
	t.Helper()
	file := s.call(t, http.MethodGet, "/v1/"+session+":export", "")
	r := s.call(t, http.MethodPost, "/v1/sessions:import", file.body, "Content-Type", file.header.Get("Content-Type"))
	return s.again(t, r)
}

func (s *system) again(t *testing.T, r reply) string {
	t.Helper()
	var made struct{ Name string }
	if err := json.Unmarshal([]byte(r.body), &made); err != nil || made.Name == "" {
		t.Fatalf("a copy of the session: %d %s", r.code, r.body)
	}
	if got := last(t, s.turn(t, made.Name, "again"), "COMPLETE").field("turnFinished", "outputJson"); got != digits {
		t.Errorf("the output in the copy is %s", got)
	}
	return made.Name
}
