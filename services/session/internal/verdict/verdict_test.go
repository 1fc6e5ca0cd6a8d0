package verdict

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func compile(t *testing.T, text string) *Schema {
	t.Helper()
	s, err := Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseReadsAVerdictOrSaysWhatIsWrong(t *testing.T) {
	schema := compile(t, `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"tags":{"type":"array","items":{"type":"string"}}},"required":["n"],"additionalProperties":false}`)
	for name, tt := range map[string]struct {
		args   string
		schema *Schema
		want   Verdict
		fault  string
	}{
		"complete":                        {`{"request_status":"COMPLETE","summary":"all done"}`, nil, Verdict{State: sessionv1.TurnState_TURN_STATE_COMPLETE, Summary: "all done"}, ""},
		"partial":                         {`{"request_status":"PARTIAL","summary":"half"}`, nil, Verdict{State: sessionv1.TurnState_TURN_STATE_PARTIAL, Summary: "half"}, ""},
		"a complete one with output":      {`{"request_status":"COMPLETE","summary":"","output":{"n":3}}`, schema, Verdict{State: sessionv1.TurnState_TURN_STATE_COMPLETE, OutputJSON: `{"n":3}`}, ""},
		"a failed one without output":     {`{"request_status":"FAILED","summary":"no"}`, schema, Verdict{State: sessionv1.TurnState_TURN_STATE_FAILED, Summary: "no"}, ""},
		"a partial one whose output null": {`{"request_status":"PARTIAL","summary":"no","output":null}`, schema, Verdict{State: sessionv1.TurnState_TURN_STATE_PARTIAL, Summary: "no"}, ""},
		"a complete one without output":   {`{"request_status":"COMPLETE","summary":"x"}`, schema, Verdict{}, "output is missing"},
		"an output that is wrong":         {`{"request_status":"COMPLETE","summary":"x","output":{"n":0,"tags":[1]}}`, schema, Verdict{}, "output.n: minimum: got 0, want 1; output.tags.0: got number, want string"},
		"a wrong output of a partial one": {`{"request_status":"PARTIAL","summary":"x","output":{}}`, schema, Verdict{}, "output: missing property 'n'"},
		"an output without a schema":      {`{"request_status":"COMPLETE","summary":"x","output":1}`, nil, Verdict{}, "output is not asked for"},
		"a status that there is not":      {`{"request_status":"DONE","summary":"x"}`, nil, Verdict{}, `"DONE" and must be COMPLETE, PARTIAL or FAILED`},
		"no summary":                      {`{"request_status":"COMPLETE"}`, nil, Verdict{}, "request_status and summary are both needed"},
		"no JSON":                         {`{"request_status":`, nil, Verdict{}, "are not valid JSON"},
		"a name twice":                    {`{"request_status":"COMPLETE","summary":"a","summary":"b"}`, nil, Verdict{}, `the name "summary" occurs twice`},
		"an argument that there is not":   {`{"request_status":"COMPLETE","Summary":"b"}`, nil, Verdict{}, `finish has no argument "Summary"`},
		"an exponent without end":         {`{"request_status":"COMPLETE","summary":"x","output":{"n":1e999999999}}`, schema, Verdict{}, "is beyond 1000"},
		"null":                            {`null`, nil, Verdict{}, "request_status and summary are both needed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tt.args, tt.schema)
			if tt.fault == "" && (err != nil || got != tt.want) || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
				t.Errorf("got %+v, %v; want %+v, %q", got, err, tt.want, tt.fault)
			}
		})
	}
}

func TestAnOutputKeepsEveryDigitAndIsComparedExactly(t *testing.T) {
	finish := func(output string) string {
		return `{"request_status":"COMPLETE","summary":"x","output": ` + output + `}`
	}
	for _, n := range []string{"9007199254740993", "123456789012345678901234567890", "0.1000000000000000055511151231257827", "1e400", "-0", "1.0"} {
		schema := compile(t, `{"const":`+n+`}`)
		if got, err := Parse(finish(n), schema); err != nil || got.OutputJSON != n {
			t.Errorf("%s came as %s (%v)", n, got.OutputJSON, err)
		}
		if text := string(ToolSchema(schema)); !strings.Contains(text, `"output":{"const":`+n+`}`) {
			t.Errorf("the model is told %s", text)
		}
	}
	for name, c := range map[string]struct{ schema, good, bad string }{
		"minimum":    {`{"minimum":9007199254740993}`, "9007199254740993", "9007199254740992"},
		"maximum":    {`{"exclusiveMaximum":1e400}`, "9e399", "1e400"},
		"const":      {`{"const":9007199254740993}`, "9007199254740993.0", "9007199254740992"},
		"enum":       {`{"enum":[123456789012345678901234567890]}`, "123456789012345678901234567890", "123456789012345678901234567891"},
		"multipleOf": {`{"multipleOf":0.01}`, "123456789012345678.91", "123456789012345678.915"},
		"unique":     {`{"uniqueItems":true}`, "[9007199254740992,9007199254740993]", "[9007199254740993,9007199254740993.0]"},
	} {
		t.Run(name, func(t *testing.T) {
			schema := compile(t, c.schema)
			if _, err := Parse(finish(c.good), schema); err != nil {
				t.Errorf("%s: %v", c.good, err)
			}
			if _, err := Parse(finish(c.bad), schema); err == nil {
				t.Errorf("%s was taken", c.bad)
			}
		})
	}
}

func TestASchemaThatIsNoneOrReachesOutIsAFault(t *testing.T) {
	for name, doc := range map[string]string{
		"a type that there is not":     `{"type":"text"}`,
		"a reference to another place": `{"$ref":"https://example.com/schema.json"}`,
		"a reference to a file":        `{"$ref":"file:///etc/passwd"}`,
		"no object":                    `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(doc); err == nil || !strings.Contains(err.Error(), "output-schema") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheReasonIsTheAgents(t *testing.T) {
	e := Verdict{State: sessionv1.TurnState_TURN_STATE_FAILED, Summary: "The disk is full."}.Error()
	if e.GetReason() != "AGENT_FAILED" || e.GetMessage() != "The agent says that it could not do the task: The disk is full." {
		t.Errorf("got %v", e)
	}
	if e := (Verdict{State: sessionv1.TurnState_TURN_STATE_COMPLETE, Summary: "x"}).Error(); e != nil {
		t.Errorf("got %v", e)
	}
}
