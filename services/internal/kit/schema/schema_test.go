package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

const input = `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}},"required":["a"],"additionalProperties":false}`

func check(s *Schema, text string) error {
	args, err := ParseArguments(text)
	if err != nil {
		return err
	}
	return s.CheckArguments(args)
}

func TestArguments(t *testing.T) {
	schema, err := Compile(input)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, in, want string }{
		{"an object that fits is taken", `{"a":"x","n":1.0}`, ""},
		{"white space around it is taken", " {\"a\":\"x\"}\n", ""},
		{"a lone surrogate is taken", `{"a":"\ud800"}`, ""},
		{"nothing is an empty object", "  ", "missing property 'a'"},
		{"null is an empty object", " null\n", "missing property 'a'"},
		{"every fault is named", `{"n":"x","z":1}`, "additional properties 'z' not allowed; missing property 'a'; n: got string, want integer"},
		{"a name twice is refused", `{"a":"x","a":"y"}`, `the name "a" occurs twice`},
		{"a name twice further in is refused", `{"a":"x","z":[{"b":{},"b":[]}]}`, `the name "b" occurs twice`},
		{"the same name in two objects is not", `{"a":"x","z":[{"b":1},{"b":1}],"n":{"a":1}}`, "additional properties 'z'"},
		{"names are not folded", `{"a":"x","A":"y"}`, "additional properties 'A'"},
		{"two values are refused", `{"a":"x"}{"a":"y"}`, "something follows the first value"},
		{"half an object is refused", `{"a":`, "unexpected end"},
		{"a bare word is refused", `rm`, "not valid JSON"},
		{"a word in quotes is refused", `"x"`, "not a JSON object but a string"},
		{"an array is refused", `[]`, "not a JSON object but an array"},
		{"a number is refused", `7`, "not a JSON object but a number"},
		{"a comma too many is refused", `{"a":"x",}`, "not valid JSON"},
		{"JSON in a fence is refused", "```json\n{\"a\":\"x\"}\n```", "not valid JSON"},
		{"a long number keeps its digits", `{"a":"x","n":9007199254740993}`, ""},
		{"a number without end is refused", `{"a":"x","n":` + strings.Repeat("9", 1001) + `}`, "more than 1000 characters"},
		{"a huge exponent is refused", `{"a":"x","n":1e99999999999}`, "is beyond 1000"},
		{"a tiny exponent is refused", `{"a":"x","n":1e-999999999999}`, "is beyond 1000"},
		{"a number beyond float64 is taken", `{"a":"x","n":1e400}`, ""},
		{"invalid UTF-8 is refused", "{\"a\":\"\xff\"}", "not valid UTF-8"},
		{"deep nesting is refused", `{"a":` + strings.Repeat("[", 1_000_000), "nested more than 128 deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := check(schema, c.in)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestASchemaThatReachesOutOrIsNoneIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":                      `{`,
		"a type that there is not":     `{"type":"nothing"}`,
		"a reference to a file":        `{"$ref":"file:///etc/passwd"}`,
		"a reference to an address":    `{"$ref":"http://127.0.0.1/x"}`,
		"a number that takes too long": `{"minimum":1e999999999}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(text); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

// explosion is a schema of n parts, each of which applies the next one twice.
func explosion(n int, part, last string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/p0","$defs":{`)
	for i := range n {
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(part, "THIS", fmt.Sprintf("p%d", i)), "NEXT", fmt.Sprintf(`{"$ref":"#/$defs/p%d"}`, i+1)) + ",")
	}
	return b.String() + fmt.Sprintf(`"p%d":%s}}`, n, last)
}

func TestACheckEndsWhateverTheSchemaAsksFor(t *testing.T) {
	draft7 := `{"$schema":"http://json-schema.org/draft-07/schema#","not":{"$ref":"#/$defs/p0"},"$defs":`
	for name, text := range map[string]string{
		"all of the next part, twice":  explosion(60, `"THIS":{"allOf":[NEXT,NEXT]}`, `true`),
		"one of the next part, twice":  explosion(60, `"THIS":{"oneOf":[NEXT,NEXT]}`, `false`),
		"under a not, in an old draft": draft7 + strings.TrimPrefix(explosion(60, `"THIS":{"dependencies":{"a":NEXT,"b":NEXT}}`, `false`), `{"$ref":"#/$defs/p0","$defs":`),
		"itself":                       `{"$ref":"#"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := check(s, `{"a":1,"b":2}`); err == nil {
				t.Error("it was taken")
			} else {
				t.Log(err)
			}
		})
	}
}

func TestASchemaOfAToolSaysThatItIsAnObjects(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing said":                   {`{}`, `{"type":"object"}`},
		"properties alone":               {`{"properties": {"b": {}, "a": {"maximum": 9007199254740993}}}`, `{"type":"object","properties":{"b":{},"a":{"maximum":9007199254740993}}}`},
		"one of several":                 {`{"oneOf":[{"type":"object"},{"type":"null"}]}`, `{"type":"object","oneOf":[{"type":"object"},{"type":"null"}]}`},
		"any of several":                 {`{"anyOf":[{},{"type":"string"}]}`, `{"type":"object","anyOf":[{},{"type":"string"}]}`},
		"all of several":                 {`{"allOf":[{"required":["a"]},true]}`, `{"type":"object","allOf":[{"required":["a"]},true]}`},
		"a reference":                    {`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"object"}}}`, `{"type":"object","$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"object"}}}`},
		"itself":                         {`{"$ref":"#"}`, `{"type":"object","$ref":"#"}`},
		"an object":                      {` {"description":"d", "type":"object"}`, `{"description":"d","type":"object"}`},
		"an object or null":              {`{"a<b":1,"type":["null","object"],"z":2}`, `{"a<b":1,"type":"object","z":2}`},
		"values that are":                {`{"enum":[1,{}]}`, `{"type":"object","enum":[1,{}]}`},
		"a type inside":                  {`{"properties":{"type":{"type":"string"}}}`, `{"type":"object","properties":{"type":{"type":"string"}}}`},
		"parts without end":              {explosion(60, `"THIS":{"allOf":[NEXT,NEXT]}`, `{}`), `{"type":"object",` + explosion(60, `"THIS":{"allOf":[NEXT,NEXT]}`, `{}`)[1:]},
		"a wrong type":                   {`{"type":"wrong"}`, "!not valid: type: "},
		"an array":                       {`{"type":"array"}`, "!not that of an object"},
		"an array or text":               {`{"type":["array","string"]}`, "!not that of an object"},
		"text by reference":              {`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, "!not that of an object"},
		"no alternative that is":         {`{"anyOf":[{"type":"string"},{"const":1}]}`, "!not that of an object"},
		"one part that is not":           {`{"allOf":[{"type":"object"},{"type":"string"}]}`, "!not that of an object"},
		"one value":                      {`{"const":1}`, "!not that of an object"},
		"values that are not":            {`{"enum":[1,"a"]}`, "!not that of an object"},
		"properties as a list":           {`{"properties":[]}`, "!not valid: properties: got array, want object"},
		"a pattern that Go cannot check": {`{"type":"object","properties":{"a":{"pattern":"^(?!x)"}}}`, `{"type":"object","properties":{"a":{"pattern":"^(?!x)"}}}`},
		"a reference to nowhere":         {`{"$ref":"#/$defs/a"}`, "!not valid"},
		"no JSON":                        {`{`, "!not valid JSON"},
		"a list":                         {`[]`, "!not a JSON object but an array"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Object(c.in)
			if want, fault := strings.CutPrefix(c.want, "!"); fault {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %s, %v; want %q", got, err, want)
				}
				t.Log(err)
			} else if err != nil || got != want {
				t.Errorf("got %s, %v; want %s", got, err, want)
			}
		})
	}
}

func TestCheckNamesWhatItChecks(t *testing.T) {
	s, err := Compile(`{"items":{"type":"object","required":["n"]}}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check("output", []any{map[string]any{"n": 1}, map[string]any{}}); err == nil || !strings.Contains(err.Error(), "output.1: missing property 'n'") {
		t.Errorf("got %v", err)
	}
}

// Drafts before 2019-09 assert formats in some libraries. Which draft a schema names is most often its generator's choice.
func TestAFormatIsAnAnnotationInEveryDraft(t *testing.T) {
	for _, draft := range []string{"", `"$schema":"http://json-schema.org/draft-07/schema#",`, `"$schema":"http://json-schema.org/draft-04/schema#",`} {
		s, err := Compile(`{` + draft + `"type":"object","properties":{"u":{"type":"string","format":"uri"}}}`)
		if err != nil {
			t.Fatal(err)
		}
		args, err := ParseArguments(`{"u":"example.com/a b"}`)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckArguments(args); err != nil {
			t.Errorf("%s: %v", draft, err)
		}
	}
}

// A model copies the bound from what it is told.
func TestFaultsHaveNumbersAsJSONWritesThem(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"maximum":600000}`, `1234567890123456789`, "maximum: got 1234567890123456789, want 600000"},
		{`{"maximum":600000}`, `1e400`, "maximum: got 1e+400, want 600000"},
		{`{"minimum":0.25}`, `-0.125`, "minimum: got -0.125, want 0.25"},
		{`{"exclusiveMinimum":1000}`, `1000`, "exclusiveMinimum: got 1000, want 1000"},
		{`{"multipleOf":0.1}`, `0.25`, "multipleOf: got 0.25, want 0.1"},
		{`{"minLength":5000}`, `"x"`, "minLength: got 1, want 5000"},
	} {
		s, err := Compile(`{"properties":{"n":` + c.schema + `}}`)
		if err != nil {
			t.Fatal(err)
		}
		args, err := ParseArguments(`{"n":` + c.value + `}`)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckArguments(args); err == nil || !strings.HasSuffix(err.Error(), "n: "+c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
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

// TestPatternsNeedMemoryForTheirBytes compiles schemas whose patterns are short and need much memory.
func TestPatternsNeedMemoryForTheirBytes(t *testing.T) {
	for what, pattern := range map[string]string{
		"repetitions":         strings.Repeat("a{1000}", 500),
		"nested repetitions":  strings.Repeat("((a{10}){10}){10}", 500),
		"classes":             strings.Repeat(`\\pL`, 10_000),
		"repeated classes":    strings.Repeat(`\\pL{1000}`, 100),
		"empty repetitions":   strings.Repeat("(){1000}", 500),
		"alternatives":        "(" + strings.Repeat("a{1000}|", 500) + ")",
		"other repetitions":   strings.Repeat("a{0,1000}", 500),
		"optional characters": strings.Repeat("(a?){1000}", 500),
	} {
		text := fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","pattern":"%s"}},"patternProperties":{"%[1]s":{}}}`, pattern)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Compile(text); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
			t.Errorf("%s: %d bytes make the process allocate %d", what, len(text), n)
		}
	}
}

func TestMatchesCountAsSteps(t *testing.T) {
	const patterns = `{"type":"object","properties":{"a":{"pattern":"^(x?){1000}(x{1000})*$"},"b":{"pattern":"^[0-9a-f-]{36}$"},"c":{"pattern":"^x*$"}}}`
	schema, err := Compile(patterns)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"a":"` + strings.Repeat("x", 1<<20) + `"}`: "too many steps",
		`{"a":"` + strings.Repeat("x", 1000) + `"}`:  "",
		`{"b":"` + strings.Repeat("x", 36) + `"}`:    "does not match pattern",
		`{"c":"` + strings.Repeat("x", 1<<20) + `"}`: "",
		`{"c":"` + strings.Repeat("y", 1<<20) + `"}`: "c: 'yyy",
	} {
		if err := check(schema, text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %q", text, err, want)
		}
	}
}
