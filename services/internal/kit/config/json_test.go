package config_test

import (
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

type schemas struct {
	Agents map[string]struct {
		Schema config.JSON `key:"schema"`
	} `key:"agents"`
	Own config.JSON `key:"own"`
}

func TestAMappingForJSONKeepsEveryDigitAndItsOrder(t *testing.T) {
	file := write(t, `
own: '{"type": "object", "maximum": 1e400}'
agents:
  a.b:
    schema: &schema
      type: object
      properties:
        z: {minimum: 9007199254740993, maximum: 123456789012345678901234567890}
        a: {const: 0.1000000000000000055511151231257827, enum: [1e400, -0, 1.0, "1.0"]}
  c: {schema: {<<: *schema, type: [object]}}
  d: {schema: ""}
`)
	var got schemas
	if err := config.Load(&got, options([]string{}, "--config", file)); err != nil {
		t.Fatal(err)
	}
	properties := `"properties":{"z":{"minimum":9007199254740993,"maximum":123456789012345678901234567890},` +
		`"a":{"const":0.1000000000000000055511151231257827,"enum":[1e400,-0,1.0,"1.0"]}}`
	for name, c := range map[string]struct{ got, want config.JSON }{
		"a mapping":              {got.Agents["a.b"].Schema, config.JSON(`{"type":"object",` + properties + `}`)},
		"a mapping that extends": {got.Agents["c"].Schema, config.JSON(`{"type":["object"],` + properties + `}`)},
		"an empty text":          {got.Agents["d"].Schema, ""},
		"a text":                 {got.Own, `{"type":"object","maximum":1e400}`},
	} {
		if c.got != c.want {
			t.Errorf("%s came as %s\nwant %s", name, c.got, c.want)
		}
	}
}

func TestWhatIsNoJSONObjectIsAFault(t *testing.T) {
	for in, want := range map[string]string{
		"own: [a]\n":                  "own is a list",
		"own: 5\n":                    "not a JSON object but a number",
		"own: '[]'\n":                 "not a JSON object but an array",
		"own: '{\"a\":1,\"a\":2}'\n":  "occurs twice",
		"own: {a: .nan}\n":            "line 1: JSON has no number .nan",
		"own: {a: 1e9999}\n":          "is beyond 1000",
		"own:\n  a: 1\n  a: 2\n":      "already defined",
		"own: &own {a: *own}\n":       "contains itself",
		"own: {<<: [{a: 1}, {a: 2}\n": "cannot be read",
	} {
		err := config.Load(&schemas{}, options([]string{}, "--config", write(t, in)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", in, err, want)
		}
	}
}
