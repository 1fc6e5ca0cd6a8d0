package terminal

import "testing"

func TestArgumentsShowEveryDigit(t *testing.T) {
	for in, want := range map[string]string{
		`{"z": 9007199254740993, "a": [123456789012345678901234567890, 1e400]}`: "a=[123456789012345678901234567890,1e400] z=9007199254740993",
		`{"n": 0.1000000000000000055511151231257827, "m": -0, "o": {"p": 1.0}}`: `m=-0 n=0.1000000000000000055511151231257827 o={"p":1.0}`,
		`{"command": "ls", "n": 1}`:      "ls",
		`{"command": null, "path": "x"}`: "x",
		`{"command": 5}`:                 "command=5",
		`{"command"`:                     `{"command"`,
	} {
		if got := Arguments(in); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}
