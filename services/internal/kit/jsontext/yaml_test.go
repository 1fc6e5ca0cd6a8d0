package jsontext_test

import (
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

func fromYAML(t *testing.T, text string) (string, error) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return jsontext.FromYAML(&n, nil)
}

func TestYAMLBecomesJSONWithEveryDigit(t *testing.T) {
	for _, n := range numbers {
		if got, err := fromYAML(t, "n: "+n); err != nil || got != `{"n":`+n+`}` {
			t.Errorf("%s became %s (%v)", n, got, err)
		}
	}
	for in, want := range map[string]string{
		"z: 1\na: [x, 2, {}]":                          `{"z":1,"a":["x",2,{}]}`,
		"[0x1F, 0o17, 010, 0b11, 1_000, +12]":          `[31,15,8,3,1000,12]`,
		"[.5, 1., +1.50, -.5e3, 1_0.5, 01.5]":          `[0.5,1.0,1.50,-0.5e3,10.5,1.5]`,
		`["1", '1e400', !!str 1, 1e400]`:               `["1","1e400","1",1e400]`,
		"[true, false, null, ~, yes, 1.2.3]":           `[true,false,null,null,"yes","1.2.3"]`,
		"a: 2001-12-14\n1: b\ntrue: c":                 `{"a":"2001-12-14","1":"b","true":"c"}`,
		"x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: *x": `{"x":{"a":1,"b":2},"y":{"b":3,"a":1},"z":{"a":1,"b":2}}`,
		"a: |\n  one <\n  two\nb: \"\\u2028\"":         `{"a":"one <\ntwo\n","b":"\u2028"}`,
	} {
		if got, err := fromYAML(t, in); err != nil || got != want {
			t.Errorf("%s\nbecame %s (%v)\n  want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"a: .inf", "a: [1,\n .nan]"} {
		if got, err := fromYAML(t, in); err == nil || !strings.Contains(err.Error(), "JSON has no number") {
			t.Errorf("%s became %s (%v)", in, got, err)
		}
	}
}
