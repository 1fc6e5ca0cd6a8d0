package scripted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRefuses(t *testing.T) {
	const ok = "fallback:\n  steps:\n    - text: x\n"
	tests := []struct{ name, yaml, want string }{
		{"an empty file", "", "the scenario is empty"},
		{"a broken file", "name: [", "line 1"},
		{"an unknown key", "name: a\ntruns: []\n" + ok, "line 2: unknown key truns"},
		{"an unknown key in a step", "name: a\nfallback:\n  steps:\n    - text: x\n      txt: y\n", "line 5: unknown key txt"},
		{"a name with spaces", "name: a b\n" + ok, `line 1: name "a b" must be`},
		{"nothing to play", "name: a\n", "needs turns or a fallback"},
		{"a second document", "name: a\n" + ok + "---\nname: b\n", "this one has more"},
		{"a bad pattern", "name: a\nturns:\n  - when: '('\n    steps: [{text: x}]\n", "line 3: error parsing regexp"},
		{"a turn without steps", "name: a\nturns:\n  - when: x\n", "a turn needs 1 to 1000 steps"},
		{"an empty step", "name: a\nturns:\n  - steps:\n      - delay: 1s\n", "line 4: a step needs text"},
		{"a bad duration", "name: a\nturns:\n  - steps:\n      - {text: x, delay: 5}\n", `line 4: "5" is not a duration`},
		{"a negative duration", "name: a\nturns:\n  - steps:\n      - {text: x, delay: -5s}\n", "line 4: the duration -5s is not between"},
		{"text that is a map", "name: a\nturns:\n  - steps:\n      - text: {a: b}\n", "line 4: text must be"},
		{"input and raw", "name: a\nturns:\n  - steps:\n      - tools:\n          - {name: B, input: {}, raw: x}\n", "line 5: a tool call has input or raw"},
		{"a call without a name", "name: a\nturns:\n  - steps:\n      - tools:\n          - {raw: x}\n", "line 5: a tool call needs a name"},
		{"input that JSON cannot hold", "name: a\nturns:\n  - steps:\n      - tools:\n          - {name: B, input: {a: .nan}}\n", "line 5: the input cannot be written as JSON"},
		{"an unknown placeholder", "name: a\nturns:\n  - steps:\n      - text: 'hi {{ .User }}'\n", "unknown placeholder {{ .User }}"},
		{"text that is not UTF-8", "name: a\nturns:\n  - steps:\n      - text: !!binary gIGC\n", "line 4: the text is not UTF-8"},
		{"an unknown stop reason", "name: a\nturns:\n  - steps:\n      - {text: x, stop_reason: tired}\n", `stop_reason "tired"`},
		{"a status that is no error", "name: a\nturns:\n  - steps:\n      - error: {status: 200}\n", "line 4: status 200"},
		{"an unknown kind of error", "name: a\nturns:\n  - steps:\n      - error: {kind: odd}\n", `kind "odd"`},
		{"a fallback with a condition", "name: a\nfallback:\n  turn: 2\n  steps: [{text: x}]\n", "the fallback fits always"},
		{"two paces", "name: a\nfallback:\n  steps: [{text: x, delay: 1s, tokens_per_second: 3}]\n", "exclude each other"},
		{"too many bytes", "name: a\n" + ok + strings.Repeat("#", maxScenarioBytes), "more than the"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.yaml))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %q", err, tt.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("name: mine\nfallback:\n  steps: [{text: hi you}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Chunks{"hi ", "you"}, s.Fallback.Steps[0].Text); diff != "" {
		t.Error(diff)
	}
	if _, err := Load(file + ".not"); !os.IsNotExist(unwrap(err)) {
		t.Errorf("a missing file gives %v", err)
	}
}

func unwrap(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(talk))
	f.Add([]byte("name: a\nfallback: &x\n  steps: [{text: [a, ~], tools: [{name: b, input: {? [1] : 2}}]}]\n"))
	f.Add([]byte("name: a\nturns: [*x]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			if s != nil || err.Error() == "" {
				t.Errorf("a refused scenario gives %v and %q", s, err)
			}
			return
		}
		for _, turn := range append(s.Turns, deref(s.Fallback)...) {
			for i := range turn.Steps {
				for j := range turn.Steps[i].Tools {
					if _, err := turn.Steps[i].Tools[j].Arguments(func(s string) string { return s }); err != nil {
						t.Errorf("an accepted input cannot be written: %v", err)
					}
				}
			}
		}
	})
}

func deref(t *Turn) []Turn {
	if t == nil {
		return nil
	}
	return []Turn{*t}
}

func TestAnInputKeepsEveryDigitAndItsOrder(t *testing.T) {
	s, err := Parse([]byte(`
name: digits
fallback:
  steps:
    - tools:
        - name: T
          input: {z: 9007199254740993, a: [123456789012345678901234567890, 0.1000000000000000055511151231257827, 1e400, -0, 1.0], s: "{{ .UserText }} 1.0"}
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Fallback.Steps[0].Tools[0].Arguments(func(s string) string { return strings.Replace(s, "{{ .UserText }}", "<b>", 1) })
	want := `{"z":9007199254740993,"a":[123456789012345678901234567890,0.1000000000000000055511151231257827,1e400,-0,1.0],"s":"<b> 1.0"}`
	if err != nil || got != want {
		t.Errorf("got %s (%v)\nwant %s", got, err, want)
	}
}
