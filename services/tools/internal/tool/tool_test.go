package tool

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

const schema = `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}},"required":["a"],"additionalProperties":false}`

func TestArguments(t *testing.T) {
	made, err := New(Spec{Name: "T", InputSchema: schema}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, in, want string }{
		{"an object that fits is taken", `{"a":"x","n":1.0}`, ""},
		{"white space around it is taken", " {\"a\":\"x\"}\n", ""},
		{"a lone surrogate is taken", `{"a":"\ud800"}`, ""},
		{"nothing is an empty object", "  ", "missing property 'a'"},
		{"every fault is named", `{"n":"x","z":1}`, "additional properties 'z' not allowed; missing property 'a'; n: got string, want integer"},
		{"a name twice is refused", `{"a":"x","a":"y"}`, `the name "a" occurs twice`},
		{"a name twice further in is refused", `{"a":"x","z":[{"b":{},"b":[]}]}`, `the name "b" occurs twice`},
		{"the same name in two objects is not", `{"a":"x","z":[{"b":1},{"b":1}],"n":{"a":1}}`, "additional properties 'z'"},
		{"names are not folded", `{"a":"x","A":"y"}`, "additional properties 'A'"},
		{"two values are refused", `{"a":"x"}{"a":"y"}`, "something follows the first value"},
		{"half an object is refused", `{"a":`, "unexpected end"},
		{"a bare word is refused", `rm`, "not valid JSON"},
		{"a string is refused", `"x"`, "not a JSON object"},
		{"a huge exponent is refused", `{"a":"x","n":1e99999999999}`, "is beyond 1000"},
		{"a tiny exponent is refused", `{"a":"x","n":1e-999999999999}`, "is beyond 1000"},
		{"a number beyond float64 is taken", `{"a":"x","n":1e400}`, ""},
		{"invalid UTF-8 is refused", "{\"a\":\"\xff\"}", "not valid UTF-8"},
		{"deep nesting is refused", `{"a":` + strings.Repeat("[", 1_000_000), "nested more than 128 deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := made.Arguments(c.in)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

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
		"a name with a space":       {Name: "a b", InputSchema: schema},
		"a name that is too long":   {Name: strings.Repeat("a", 129), InputSchema: schema},
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

func FuzzParseArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[{"b":1,"b":2}]}`, `[[`, `{"a":1e999}`, `{"a":"\u0000"}`, "", "}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args, err := ParseArguments(text)
		if err == nil && args.Value == nil {
			t.Errorf("%q: neither arguments nor an error", text)
		}
	})
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
