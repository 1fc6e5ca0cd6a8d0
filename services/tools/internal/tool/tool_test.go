package tool

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

const input = `{"type":"object","properties":{"a":{"type":"string"}}}`

func TestSchemasCompareEveryDigit(t *testing.T) {
	for name, c := range map[string]struct{ schema, good, bad string }{
		"minimum":    {`{"minimum":9007199254740993}`, "9007199254740993", "9007199254740992"},
		"maximum":    {`{"exclusiveMaximum":1e400}`, "9e399", "1e400"},
		"const":      {`{"const":9007199254740993}`, "9007199254740993.0", "9007199254740992"},
		"enum":       {`{"enum":[123456789012345678901234567890]}`, "123456789012345678901234567890", "123456789012345678901234567891"},
		"multipleOf": {`{"multipleOf":0.01}`, "123456789012345678.91", "123456789012345678.915"},
		"integer":    {`{"type":"integer"}`, "123456789012345678901234567890", "123456789012345678901234567890.5"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := New(Spec{Name: "T", InputSchema: `{"type": "object", "properties": {"n": ` + c.schema + `}}`}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"type":"object","properties":{"n":` + c.schema + `}}`; made.InputSchema != want {
				t.Errorf("the schema is told as %s, want %s", made.InputSchema, want)
			}
			if _, err := made.Arguments(`{"n":` + c.good + `}`); err != nil {
				t.Errorf("%s: %v", c.good, err)
			}
			if _, err := made.Arguments(`{"n":` + c.bad + `}`); err == nil {
				t.Errorf("%s was taken", c.bad)
			}
		})
	}
}

func TestNewRefusesWhatModelsCannotCall(t *testing.T) {
	for name, spec := range map[string]Spec{
		"a name with a space":       {Name: "a b", InputSchema: input},
		"a name that is too long":   {Name: strings.Repeat("a", 129), InputSchema: input},
		"a schema that is no JSON":  {Name: "T", InputSchema: "{"},
		"a schema that is none":     {Name: "T", InputSchema: `{"type":"nothing"}`},
		"a schema from elsewhere":   {Name: "T", InputSchema: `{"$ref":"file:///etc/passwd"}`},
		"a schema from the network": {Name: "T", InputSchema: `{"$ref":"http://127.0.0.1/x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(spec, nil); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func TestResultsFitTheContract(t *testing.T) {
	if r := OK(""); len(r.GetContent()) != 0 {
		t.Errorf("an empty text made content: %v", r)
	}
	long := Text(OK(strings.Repeat("é", 1<<20)))
	if len(long) > 1<<20 || !strings.HasSuffix(long, "the rest was left out.]") {
		t.Errorf("got %d bytes", len(long))
	}
	if got := Text(Failed("a\xff")); got != "a\uFFFD" {
		t.Errorf("got %q", got)
	}
}

func TestANumberBeyondFloat64IsCutByTheToolsBounds(t *testing.T) {
	for in, want := range map[string]int64{
		"1e400": 1 << 40, "-1e400": 1, "1.0": 1, "7.0": 7, "2e1": 20, "1e-400": 1, "123456789012345678901234567890": 1 << 40, "-0": 1, "null": 1,
	} {
		var n Number
		if err := json.Unmarshal([]byte(in), &n); err != nil || n.Within(1, 1<<40) != want {
			t.Errorf("%s came as %d (%v), want %d", in, n.Within(1, 1<<40), err, want)
		}
	}
	if n := Number(math.Inf(1)); n.Within(0, math.MaxInt64) != math.MaxInt64 {
		t.Errorf("got %d", n.Within(0, math.MaxInt64))
	}
}
