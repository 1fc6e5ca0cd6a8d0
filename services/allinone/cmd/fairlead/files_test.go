package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesGoInAndOut(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	address := serverOf(t, dataOf(t))
	run := func(args ...string) string {
		t.Helper()
		got := embedded(t, append(args, "--server", address)...)
		if got.code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, got.code, got.err)
		}
		return strings.TrimSpace(got.out)
	}
	run("run", "hello")
	session := strings.Fields(strings.Split(run("sessions", "list"), "\n")[1])[0]
	local := filepath.Join(t.TempDir(), "plan.txt")
	if err := os.WriteFile(local, []byte("a plan"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := run("files", "put", session, local); got != "plan.txt" {
		t.Errorf("put prints %q", got)
	}
	run("files", "put", session, local, "uploads/deep/plan.txt")
	if got := run("files", "get", session, "uploads/deep/plan.txt"); got != "a plan" {
		t.Errorf("get prints %q", got)
	}
	copied := local + ".copy"
	run("files", "get", session, "plan.txt", "-o", copied)
	if got, err := os.ReadFile(copied); err != nil || string(got) != "a plan" {
		t.Errorf("%q, %v", got, err)
	}
	if got := run("files", "list", session, "uploads", "-r"); !strings.HasSuffix(got, "uploads/deep/plan.txt") || !strings.Contains(got, "uploads/deep/\n") {
		t.Errorf("list prints\n%s", got)
	}
	if got := run("upload", local, "--json"); !strings.Contains(got, `"FILE_STATE_READY"`) || !strings.Contains(got, `"text/plain`) {
		t.Errorf("upload prints %s", got)
	}
	run("files", "rm", session, "uploads/deep", "-r")
	if got := embedded(t, "files", "get", session, "uploads/deep/plan.txt", "--server", address); got.code != exitError || !strings.Contains(got.err, "no such file") {
		t.Errorf("get of a file that is gone: %d %s", got.code, got.err)
	}
}
