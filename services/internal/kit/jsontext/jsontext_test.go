package jsontext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// numbers are texts that a float64 would change.
var numbers = []string{
	"9007199254740993", "123456789012345678901234567890", "0.1000000000000000055511151231257827", "1e400", "-0", "1.0", "1E+2", "0.10",
}

func TestAnObjectKeepsEveryDigit(t *testing.T) {
	for _, n := range numbers {
		got, err := jsontext.Object(`{"n": ` + n + `}`)
		if err != nil || got["n"] != json.Number(n) {
			t.Errorf("%s came as %v (%v)", n, got["n"], err)
		}
		if text, err := jsontext.Compact("{ \"n\" :\n" + n + " }"); err != nil || text != `{"n":`+n+`}` {
			t.Errorf("%s became %s (%v)", n, text, err)
		}
	}
}

func TestObjectRefusesWhatTwoReadersCouldReadDifferently(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":                   {"", "unexpected end"},
		"a name twice":              {`{"a":1,"a":2}`, `the name "a" occurs twice`},
		"a name twice, escaped":     {`{"a":1,"\u0061":2}`, `the name "a" occurs twice`},
		"a name twice further in":   {`{"z":[{"b":{},"b":[]}]}`, `the name "b" occurs twice`},
		"two values":                {`{}{}`, "something follows"},
		"half an object":            {`{"a":`, "unexpected end"},
		"null":                      {"null", "not a JSON object but null"},
		"an array":                  {"[]", "not a JSON object but an array"},
		"a text":                    {`"x"`, "not a JSON object but a string"},
		"a number":                  {"7", "not a JSON object but a number"},
		"invalid UTF-8":             {"{\"a\":\"\xff\"}", "not valid UTF-8"},
		"deep nesting":              {`{"a":` + strings.Repeat("[", 1_000_000), "nested more than 128 deep"},
		"an exponent beyond all":    {`{"n":1e99999999999}`, "is beyond 1000"},
		"an exponent far below":     {`{"n":1e-1001}`, "is beyond 1000"},
		"a number without an end":   {`{"n":` + strings.Repeat("9", 1001) + `}`, "more than 1000 characters"},
		"a number as in no grammar": {`{"n":01}`, "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := jsontext.Object(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want %q", got, err, c.want)
			}
		})
	}
	if _, err := jsontext.Object(`{"z":[{"b":1},{"b":1}],"n":{"a":1,"A":2}}`); err != nil {
		t.Errorf("the same name in two objects: %v", err)
	}
}

func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[{"b":1,"b":2}]}`, `[[`, `{"a":1e999}`, `{"a":"\u0000"}`, "", "}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object, err := jsontext.Object(text)
		if err != nil {
			return
		}
		if compact, err := jsontext.Compact(text); object == nil || err != nil || !json.Valid([]byte(compact)) {
			t.Errorf("%q: %v, %q, %v", text, object, compact, err)
		}
	})
}
