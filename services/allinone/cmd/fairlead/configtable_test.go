package main

import (
	"strings"
	"testing"
)

func TestConfigTableDoesNotDependOnTheMachine(t *testing.T) {
	first := embedded(t, "config-table")
	t.Setenv("HOME", "/nowhere")
	t.Setenv("XDG_DATA_HOME", "/elsewhere")
	second := embedded(t, "config-table")
	if first.out != second.out || first.code != 0 {
		t.Error("the table changed with the environment")
	}
	for _, want := range []string{"`~/.local/share/fairlead`", "FAIRLEAD_SESSION_LEASE_TTL", "## The service alone: `gateway`", "127.0.0.1:9192", "`{data}/sandbox`",
		"### `session.agents.NAME`", "| `network[].host` |", "| `limits.memory` |", "### `sandbox.mounts[]`", "| `max-repeated-calls` | number |"} {
		if !strings.Contains(first.out, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for line := range strings.SplitSeq(first.out, "\n") {
		bars := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if strings.HasPrefix(line, "|") && bars != 7 && bars != 4 {
			t.Errorf("a row with another number of cells: %s", line)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command shows the commands":      {nil, "Commands:"},
		"the help of run has the exit codes": {[]string{"run", "--help"}, "4 INTERRUPTED"},
		"the help of serve has the keys":     {[]string{"serve", "--help"}, "--session.lease-ttl"},
		"the version":                        {[]string{"version"}, version},
	} {
		t.Run(name, func(t *testing.T) {
			if got := embedded(t, c.args...); got.code != 0 || !strings.Contains(got.out, c.want) {
				t.Errorf("exit code %d\n%s%s", got.code, got.out, got.err)
			}
		})
	}
}

func TestARealDemonstrationNeedsAKey(t *testing.T) {
	t.Parallel()
	if got := embedded(t, "demo", "--real"); got.code != 2 || !strings.Contains(got.err, "ANTHROPIC_API_KEY") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}

func TestAPromptThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	if _, errs, code := fairlead(t.Context(), strings.Repeat("x", maxPrompt+1), nil, "run"); code != 2 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
