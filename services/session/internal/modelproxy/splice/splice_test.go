package splice_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/modelproxy/splice"
)

func TestOnlyTheMembersThatAreSetChange(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"a:b","x":1}`:                        `{"n":7,"model":"b","x":1}`,
		" {\n \"x\" : [1.0, 2e3],\"model\" :\"a\" }\n": " {\"n\":7,\n \"x\" : [1.0, 2e3],\"model\" :\"b\" }\n",
		`{"n":1,"s":"\u00e9é","model":null}`:           `{"n":7,"s":"\u00e9é","model":"b"}`,
		`{"m":{"model":"inner","n":2},"n":3}`:          `{"model":"b","m":{"model":"inner","n":2},"n":7}`,
	} {
		o, err := splice.Parse([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		o.Set("model", "b")
		o.Set("n", 7)
		if got := string(o.Bytes()); got != want {
			t.Errorf("%s became\n%s, want\n%s", body, got, want)
		}
	}
	o, err := splice.Parse([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	o.Set("model", "b")
	if got := string(o.Bytes()); got != `{"model":"b"}` {
		t.Errorf("an empty object became %s", got)
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	for _, body := range []string{``, `[]`, `"x"`, `{`, `{"a":1`, `{"a":1}{}`, `{"a":1} x`, `{"model":"a","model":"b"}`, `{a:1}`, `{"a":}`} {
		if _, err := splice.Parse([]byte(body)); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
}

func FuzzSplice(f *testing.F) {
	for _, s := range []string{`{"model":"a:b","max_tokens":5,"messages":[{"role":"user"}]}`, `{}`, `{"x":{"y":[1,{}]}}`, ` { "a" : "\"" } `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := splice.Parse(body)
		if err != nil {
			return
		}
		if !bytes.Equal(o.Bytes(), body) {
			t.Fatal("an object without changes changed")
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal(body, &before); err != nil {
			t.Fatalf("%q was taken, and is not JSON: %v", body, err)
		}
		o.Set("model", "b")
		if err := json.Unmarshal(o.Bytes(), &after); err != nil {
			t.Fatalf("%q became %q: %v", body, o.Bytes(), err)
		}
		if string(after["model"]) != `"b"` {
			t.Fatalf("%q became %q", body, o.Bytes())
		}
		delete(before, "model")
		delete(after, "model")
		if len(before) != len(after) {
			t.Fatalf("%q became %q", body, o.Bytes())
		}
		for name, v := range before {
			if !bytes.Equal(after[name], v) {
				t.Fatalf("%q: the member %q became %q", body, name, after[name])
			}
		}
	})
}
