package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEnvironmentsAndTriggersOnTheCommandLine(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	address := serverOf(t, data)
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "environment.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
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
	has(run(0, "environments", "create", "prod", "-f", file("description: Production.\nvariables: {STAGE: prod}\nlimits: {processes: 64, memory: 1073741824, cpus: 1.5, timeout: 90s}\n")), "version      1", "STAGE", "Production.")
	has(run(0, "environments", "get", "prod"), "limits       memory=1073741824 processes=64 cpus=1.5 timeout=1m30s")
	has(run(0, "environments", "create", "built", "-f", file("setup: [make tools, make data]\n")), "make tools", "make data")
	has(run(0, "environments", "update", "prod", "-f", file("variables: {STAGE: live}\n")), "version      2")
	has(run(1, "environments", "update", "prod", "-f", file("variables: {STAGE: x}\n"), "--expected", "1"), "The newest version of environments/prod is 2, not 1")
	has(run(0, "environments", "get", "prod", "--json"), `"STAGE":"live"`)
	has(run(1, "environments", "create", "odd", "-f", file("mounts: [{name: /etc}]\n")), "mounts")
	has(run(0, "environments", "create", "library", "-f", file("mounts: [{name: books, path: 2026/june, alias: mnt/june, mode: ro, optional: true}, {name: drafts}]\n")),
		"books path=2026/june alias=mnt/june mode=ro optional, drafts")
	has(run(2, "environments", "create", "odd", "-f", file("netwerk: []\n")), "netwerk")
	has(run(0, "environments", "archive", "prod"), "archived")
	if out := run(0, "environments", "list"); strings.Contains(out, "prod") {
		t.Errorf("an archived one is listed:\n%s", out)
	}
	has(run(0, "environments", "list", "--archived"), "prod")

	made := run(0, "triggers", "create", "--agent", "coder", "Look at {{payload}}.", "--address", "--json")
	has(made, `"agent":"agents/coder"`, `:fire?secret=`)
	if _, secret, _ := strings.Cut(run(0, "triggers", "create", "--agent", "coder", "Look.", "--address"), "secret="); len(secret) < 43 || strings.Contains(secret, "...") {
		t.Errorf("the address ends in %q", secret)
	}
	_, rest, _ := strings.Cut(made, `"name":"triggers/`)
	trigger, _, _ := strings.Cut(rest, `"`)
	has(run(0, "triggers", "list"), trigger, "agents/coder", "active")
	has(run(0, "triggers", "pause", trigger), "paused")
	has(run(0, "triggers", "resume", trigger), "active")
	has(run(0, "triggers", "rotate", trigger), "old secret until", "/v1/triggers/"+trigger+":fire?secret=")
	has(run(0, "triggers", "get", trigger), "Look at {{payload}}.")
	has(run(0, "triggers", "delete", trigger), "deleted")
	has(run(1, "triggers", "get", trigger), "There is no trigger")
}

// Tenants are made where their operator is known: by a command on the server's machine.
func TestTenantsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	has := func(want int, args string, wants ...string) {
		t.Helper()
		got := embedded(t, append(strings.Fields(args), "--data", data)...)
		for _, w := range wants {
			if got.code != want || !strings.Contains(got.out+got.err, w) {
				t.Errorf("%s: exit code %d, no %q in:\n%s%s", args, got.code, w, got.out, got.err)
			}
		}
	}
	has(1, "tenants create acme", "fairlead admin init")
	has(1, "keys create", "fairlead admin init")
	has(0, "admin init", "users/admin in the tenant default")
	has(0, "tenants create acme --title Acme", "acme", "admin", "fl_")
	has(0, "tenants list --json", `"title":"Acme"`)
}

func TestASetupRunsInTheSandboxOnceWhateverTheAgentMayDo(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	scenario, conf, env := filepath.Join(data, "scenario.yaml"), filepath.Join(data, "fairlead.yaml"), filepath.Join(data, "environment.yaml")
	for name, text := range map[string]string{
		scenario: "name: reader\nturns:\n  - when: .\n    steps:\n      - tools: [{name: Read, input: {file_path: /workspace/log.txt}}]\n      - text: [\"{{ .LastToolResult }}\"]\n",
		conf:     "session:\n  scenario: " + scenario + "\n  agents:\n    reader: {model: \"scripted:reader\", prompt: p, tools: [Read], profile: read-only}\n",
		env:      "variables: {STAGE: prod}\nsetup:\n  - echo \"set up $STAGE\" >> /workspace/log.txt\n  - echo oops >&2; exit 3\n  - echo never >> /workspace/log.txt\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := serverOf(t, data, "--config", conf)
	run := func(args ...string) string {
		t.Helper()
		out, errs, code := fairlead(t.Context(), "", map[string]string{"PATH": os.Getenv("PATH"), "HOME": data}, append(args, "--server", address)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out + errs
	}
	run("environments", "create", "prod", "-f", env)
	first := run("run", "--agent", "reader", "--environment", "prod", "--key", "one", "read it")
	if strings.Count(first, "set up prod") == 0 || strings.Contains(first, "never") || !strings.Contains(first, "oops") || !strings.Contains(first, "failed at command 2") {
		t.Errorf("the first turn:\n%s", first)
	}
	_, rest, _ := strings.Cut(run("sessions", "list", "--json"), `"name":"sessions/`)
	session, _, _ := strings.Cut(rest, `"`)
	second := run("run", "--session", session, "read it again")
	if strings.Contains(second, "failed at command") || !strings.Contains(second, "set up prod") {
		t.Errorf("the second turn:\n%s", second)
	}
	if n := strings.Count(run("files", "get", session, "log.txt"), "set up"); n != 1 {
		t.Errorf("the first command ran %d times", n)
	}
	other := run("run", "--agent", "reader", "--environment", "prod", "--key", "two", "read it")
	if !strings.Contains(other, "set up prod") || !strings.Contains(other, "oops") {
		t.Errorf("the first turn of another session:\n%s", other)
	}
}
