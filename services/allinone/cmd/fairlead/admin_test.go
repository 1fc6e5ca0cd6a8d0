package main

import (
	"regexp"
	"strings"
	"testing"
)

var secretIn = regexp.MustCompile(`fl_[A-Za-z0-9_-]{43}`)

func TestAdminInitOfAStoppedServer(t *testing.T) {
	needSandbox(t)
	t.Setenv("FAIRLEAD_MODEL", "scripted:default")
	t.Setenv("FAIRLEAD_DATABASE_URL", "")
	data := dataOf(t)
	first := embedded(t, "admin", "init", "--data", data, "--user", "root")
	if first.code != 0 || !secretIn.MatchString(first.out) || !strings.Contains(first.out, "the server of "+data+" needs a key") || !strings.Contains(first.out, "fairlead login") {
		t.Fatalf("%+v", first)
	}
	again := embedded(t, "admin", "init", "--data", data)
	if again.code != 1 || !strings.Contains(again.err, "fairlead keys create") || secretIn.MatchString(again.out+again.err) {
		t.Errorf("again: %+v", again)
	}
	if got := embedded(t, "admin", "key", "--data", data, "--user", "nobody"); got.code != 1 || !strings.Contains(got.err, "no user nobody") {
		t.Errorf("a key of no user: %+v", got)
	}
	lost := embedded(t, "admin", "key", "--data", data, "--user", "root")
	if lost.code != 0 || secretIn.FindString(lost.out) == secretIn.FindString(first.out) {
		t.Errorf("a key for one that was lost: %+v", lost)
	}
	list := embedded(t, "keys", "list", "--data", data, "--json")
	if n := strings.Count(list.out, `"user":"users/root"`); n != 2 || strings.Contains(list.out, "fl_") {
		t.Errorf("the keys: %+v", list)
	}
	log := embedded(t, "audit", "export", "--data", data)
	if log.code != 0 || strings.Count(log.out, `.CreateKey","resource":"keys/`) != 2 || strings.Count(log.out, `"credential":"fairlead admin"`) != 4 || secretIn.MatchString(log.out) {
		t.Errorf("the audit log: %+v", log)
	}
	if got := embedded(t, "audit", "verify", "--data", data); got.code != 0 || !strings.Contains(got.out, "is whole: 4 entries") {
		t.Errorf("the chain: %+v", got)
	}
}

func TestAdminInitOfARunningServer(t *testing.T) {
	needSandbox(t)
	t.Setenv("FAIRLEAD_SERVER", "")
	t.Setenv("FAIRLEAD_MODEL", "scripted:default")
	t.Setenv("FAIRLEAD_DATABASE_URL", "")
	data := dataOf(t)
	lines := serving(t, "--data", data, "--grpc=127.0.0.1:0", "--http=127.0.0.1:0")
	if !strings.Contains(lines, "fairlead admin init") {
		t.Errorf("an open server does not say so:\n%s", lines)
	}
	first := embedded(t, "admin", "init", "--data", data, "--user", "root")
	if first.code != 0 || !secretIn.MatchString(first.out) || !strings.Contains(first.out, "users/root in the tenant default") {
		t.Fatalf("%+v", first)
	}
	if want := "fairlead login --server " + after(t, lines, "gRPC") + "\n"; !strings.Contains(first.out, want) {
		t.Errorf("it does not say %q: %s", want, first.out)
	}
	if again := embedded(t, "admin", "init", "--data", data); again.code != 1 || !strings.Contains(again.err, "has a key already") {
		t.Errorf("again: %+v", again)
	}
	if again := embedded(t, "admin", "init", "--server", after(t, lines, "gRPC")); again.code != 1 || !strings.Contains(again.err, "has a key already") {
		t.Errorf("again by its address: %+v", again)
	}
	if got := embedded(t, "admin", "key", "--data", data); got.code != 1 || !strings.Contains(got.err, "Stop it first") {
		t.Errorf("admin key: %+v", got)
	}
	server, env := after(t, lines, "gRPC"), map[string]string{"XDG_CONFIG_HOME": t.TempDir()}
	command := func(in string, args ...string) result {
		out, errs, code := fairlead(t.Context(), in, env, append(args, "--server", server)...)
		return result{code, out, errs}
	}
	if got := command(secretIn.FindString(first.out), "login", "--key"); got.code != 0 || !strings.Contains(got.out, "users/root of tenants/default") {
		t.Fatalf("login: %+v", got)
	}
	made := command("", "keys", "create", "--scopes", "sessions.read", "--json")
	if made.code != 0 || !secretIn.MatchString(made.out) {
		t.Fatalf("%+v", made)
	}
	env[apiKeyVariable] = secretIn.FindString(made.out)
	if got := command("", "sessions", "list"); got.code != 0 {
		t.Errorf("with a key that may read sessions: %+v", got)
	}
	if got := command("", "users", "create", "ann"); got.code != 1 || !strings.Contains(got.err, "users.write") {
		t.Errorf("with a key that may only read sessions: %+v", got)
	}
	delete(env, apiKeyVariable)
	if got := command("", "audit", "export"); got.code != 0 || strings.Count(got.out, `.CreateKey","resource":"keys/`) != 2 {
		t.Errorf("the audit log: %+v", got)
	}
	if got := command("", "audit", "verify"); got.code != 0 || !strings.Contains(got.out, "is whole") {
		t.Errorf("%+v", got)
	}
}
