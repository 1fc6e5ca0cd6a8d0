package main

import (
	"strings"
	"testing"
)

func TestAToolIsCalledWithoutTheModel(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	address := serverOf(t, dataOf(t))
	if got := embedded(t, "run", "hello", "--server", address); got.code != 0 {
		t.Fatal(got)
	}
	listed := embedded(t, "sessions", "list", "--server", address)
	session := strings.Fields(strings.Split(listed.out, "\n")[1])[0]
	for name, c := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"a result":                {[]string{"Write", `{"file_path":"a.txt","content":"hi"}`}, 0, "a.txt", ""},
		"a tool that fails":       {[]string{"Read", `{"file_path":"nothing.txt"}`}, exitError, "nothing.txt", "the call ended ERROR"},
		"a tool of nothing":       {[]string{"Nothing"}, exitError, `There is no tool "Nothing"`, "the call ended ERROR"},
		"arguments that are none": {[]string{"Read", "{"}, exitError, "JSON", "the call ended ERROR"},
		"a time below zero":       {[]string{"Read", "--timeout=-1s"}, exitUsage, "", "negative"},
	} {
		if got := embedded(t, append([]string{"call", session, "--server", address}, c.args...)...); got.code != c.code || !strings.Contains(got.out, c.out) || !strings.Contains(got.err, c.err) {
			t.Errorf("%s: %d\n%s\n%s", name, got.code, got.out, got.err)
		}
	}
	if got := embedded(t, "call", session, "Read", `{"file_path":"a.txt"}`, "--json", "--server", address); got.code != 0 || !strings.Contains(got.out, `"turnFinished"`) || !strings.Contains(got.out, "hi") {
		t.Errorf("events: %d\n%s\n%s", got.code, got.out, got.err)
	}
	if got := embedded(t, "sessions", "events", session, "--server", address); !strings.Contains(got.out, "Write OK") {
		t.Errorf("the log shows\n%s", got.out)
	}
}
