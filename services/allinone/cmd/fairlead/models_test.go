package main

import (
	"os"
	"strings"
	"testing"
)

func TestModelsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	data := dataOf(t)
	address := serverOf(t, data)
	run := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := fairlead(t.Context(), "", map[string]string{"PATH": os.Getenv("PATH"), "HOME": data}, append(args, "--server", address)...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out + errs
	}
	has := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	}
	has(run(0, "models", "list"), "openai:gpt-5.5", "5 / 30", "no: the model provider anthropic has no key: set ANTHROPIC_API_KEY in the environment of the server and start it again")
	has(run(0, "models", "get", "openai:gpt-99"), "no: the model provider openai has no key", "128000", "thinking")
	has(run(1, "models", "get", "nowhere:x"), `There is no model "models/nowhere:x"`)
	has(run(0, "models", "add", "fast", "openai:gpt-5.4-mini", "--max-output-tokens", "2000", "--temperature", "0.5"), "tenant:fast", "2000", "openai:gpt-5.4-mini")
	has(run(1, "models", "add", "large", "openai:gpt-5.4-mini", "--max-output-tokens", "2000000"), "spec.max_output_tokens", "only narrows")
	has(run(1, "models", "add", "fast", "openai:gpt-5.5"), "There is already a model")
	has(run(0, "models", "list", "--json"), `"name":"models/tenant:fast"`, `"temperature":0.5`)
	has(run(0, "models", "delete", "tenant:fast"), "deleted")
	has(run(1, "models", "get", "tenant:fast"), "There is no model")
}
