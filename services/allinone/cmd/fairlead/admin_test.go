package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/internal/endpoint"
)

var keyNameIn = regexp.MustCompile(`keys/[a-z0-9]+`)

var secretIn = regexp.MustCompile(`fl_[A-Za-z0-9_-]{43}`)

func TestAdminInitOfAStoppedServer(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	first := embedded(t, "admin", "init", "--data", data, "--user", "root")
	if first.code != 0 || !secretIn.MatchString(first.out) || !strings.Contains(first.out, "in the database "+filepath.Join(data, "session.db")+".\n") {
		t.Fatalf("%+v", first)
	}
	again := embedded(t, "admin", "init", "--data", data)
	if again.code != 1 || !strings.Contains(again.err, "of the tenant default in the database "+filepath.Join(data, "session.db")) || !strings.Contains(again.err, "fairlead keys create") || secretIn.MatchString(again.out+again.err) {
		t.Errorf("again: %+v", again)
	}
	if got := embedded(t, "admin", "key", "--data", data, "--user", "nobody"); got.code != 1 || !strings.Contains(got.err, "no such user: nobody") {
		t.Errorf("a key of no user: %+v", got)
	}
	lost := embedded(t, "admin", "key", "--data", data, "--user", "root")
	if lost.code != 0 || secretIn.FindString(lost.out) == secretIn.FindString(first.out) {
		t.Errorf("a key for one that was lost: %+v", lost)
	}
	if got := embedded(t, "admin", "key", "--data", data); got.code != 0 || !strings.Contains(got.out, "users/admin in") {
		t.Errorf("a key without a user: %+v", got)
	}
	list := embedded(t, "keys", "list", "--data", data, "--json")
	if n := strings.Count(list.out, `"user":"users/root"`); n != 2 || strings.Contains(list.out, "fl_") {
		t.Errorf("the keys: %+v", list)
	}
	log := embedded(t, "audit", "export", "--data", data)
	if log.code != 0 || strings.Count(log.out, `.CreateKey","resource":"keys/`) != 3 || strings.Count(log.out, `"credential":"fairlead admin"`) != 6 || secretIn.MatchString(log.out) {
		t.Errorf("the audit log: %+v", log)
	}
	if got := embedded(t, "audit", "verify", "--data", data); got.code != 0 || !strings.Contains(got.out, "is whole: 6 entries") {
		t.Errorf("the chain: %+v", got)
	}
}

func TestAdminInitOfARunningServer(t *testing.T) {
	t.Parallel()
	needSandbox(t)
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
	if again := embedded(t, "admin", "init", "--data", data); again.code != 1 || !strings.Contains(again.err, "fairlead login") || secretIn.MatchString(again.out) {
		t.Errorf("again: %+v", again)
	}
	if again := embedded(t, "admin", "init", "--server", after(t, lines, "gRPC")); again.code != 1 || !strings.Contains(again.err, "fairlead login") || secretIn.MatchString(again.out) {
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
	env[endpoint.KeyVariable] = secretIn.FindString(made.out)
	if got := command("", "sessions", "list"); got.code != 0 {
		t.Errorf("with a key that may read sessions: %+v", got)
	}
	if got := command("", "users", "create", "ann"); got.code != 1 || !strings.Contains(got.err, "users.write") {
		t.Errorf("with a key that may only read sessions: %+v", got)
	}
	delete(env, endpoint.KeyVariable)
	child := command("", "keys", "create")
	root := command("", "whoami", "--json")
	env[endpoint.KeyVariable] = secretIn.FindString(child.out)
	parent := keyNameIn.FindString(root.out)
	if got := command("", "keys", "revoke", parent); got.code != exitUsage || !strings.Contains(got.err, "--yes") || !strings.Contains(got.err, parent) {
		t.Errorf("a key revokes the one that made it: %+v", got)
	}
	delete(env, endpoint.KeyVariable)
	other := command("", "keys", "create", "--json")
	env[endpoint.KeyVariable] = secretIn.FindString(other.out)
	grandchild := command("", "keys", "create", "--json")
	delete(env, endpoint.KeyVariable)
	if got := command("", "keys", "revoke", keyNameIn.FindString(other.out)); got.code != 0 || !strings.Contains(got.out, keyNameIn.FindString(grandchild.out)) {
		t.Errorf("a revocation does not tell what else it ended: %+v", got)
	}
	if got := command("", "audit", "export"); got.code != 0 || strings.Count(got.out, `.CreateKey","resource":"keys/`) != 5 {
		t.Errorf("the audit log: %+v", got)
	}
	if got := command("", "audit", "verify"); got.code != 0 || !strings.Contains(got.out, "is whole") {
		t.Errorf("%+v", got)
	}
}

func TestAnOpenServerStaysOpenUntilItsFirstKeyIsMadeOnPurpose(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	lines := serving(t, "--data", data, "--grpc=127.0.0.1:0", "--http=127.0.0.1:0")
	address := after(t, lines, "gRPC")
	command := func(args ...string) result {
		out, errs, code := fairlead(t.Context(), "", map[string]string{"XDG_CONFIG_HOME": t.TempDir()}, append(args, "--server", address)...)
		return result{code, out, errs}
	}
	for _, args := range [][]string{
		{"tenants", "create", "acme"}, {"keys", "create"}, {"keys", "create", "--role", "admin"}, {"keys", "create", "--scopes", "sessions.read"},
		{"keys", "create", "--user", "default"}, {"keys", "create", "--expires-in", "1h"},
	} {
		if got := command(args...); got.code != 1 || !strings.Contains(got.err, "fairlead admin init --server "+address+"`") || secretIn.MatchString(got.out) {
			t.Errorf("%v: %+v", args, got)
		}
		if got := command("sessions", "list"); got.code != 0 {
			t.Fatalf("%v closed the server: %+v", args, got)
		}
	}
	if got := embedded(t, "admin", "init", "--data", t.TempDir()); got.code != 0 || !strings.Contains(got.out, "A server on another database is as before.") {
		t.Errorf("the first key of another database: %+v", got)
	}
	if got := command("admin", "init"); got.code != 0 || !strings.Contains(got.out, "From now on every call to the server at "+address) {
		t.Errorf("admin init: %+v", got)
	}
}

func TestAnAdminLearnsThatTheKeyIsNotForTheServer(t *testing.T) {
	needSandbox(t)
	lines := serving(t, "--data", dataOf(t), "--grpc=127.0.0.1:0", "--http=127.0.0.1:0")
	address := after(t, lines, "gRPC")
	t.Setenv("FAIRLEAD_GRPC", address) // the command's configuration names that server
	wrong := embedded(t, "admin", "init", "--data", t.TempDir())
	if wrong.code != 0 || !strings.Contains(wrong.out, "WARNING: the server at "+address+" refuses this key, because it uses another database") {
		t.Errorf("%+v", wrong)
	}
}

func TestAClosedServerWithoutAKeySaysWhereToMakeIt(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	lines := serving(t, "--data", data, "--grpc=127.0.0.1:0", "--http=127.0.0.1:0", "--auth.mode=required")
	if strings.Contains(lines, "  open ") || !strings.Contains(lines, "no key exists yet") {
		t.Errorf("a closed server does not say so:\n%s", lines)
	}
	for _, args := range [][]string{{"--server", after(t, lines, "gRPC")}, {"--data", data}} {
		got := embedded(t, append([]string{"admin", "init"}, args...)...)
		if got.code != 1 || strings.Contains(got.err, "has a key already") || !strings.Contains(got.err, "session admin init") || !strings.Contains(got.err, "stop the server first") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
