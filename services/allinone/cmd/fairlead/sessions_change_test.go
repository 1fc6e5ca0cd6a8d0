package main

import (
	"os"
	"strings"
	"testing"
)

func TestASessionIsLabelledFoundAndArchived(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	address := serverOf(t, data)
	run := func(args ...string) string {
		t.Helper()
		out, errs, code := fairlead(t.Context(), "", map[string]string{"PATH": os.Getenv("PATH"), "HOME": data}, append(args, "--server", address)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out
	}
	run("run", "--title", "one", "--label", "team=a", "hello")
	run("run", "hello")
	out := run("sessions", "list", "--label", "team=a")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "one") {
		t.Fatalf("with the label:\n%s", out)
	}
	id := strings.Fields(strings.Split(out, "\n")[1])[0]
	if out := run("sessions", "update", id, "--label", "team=b=c", "--label", "x=1", "--title", "two"); !strings.Contains(out, "team=b=c") || !strings.Contains(out, "two") {
		t.Errorf("changed:\n%s", out)
	}
	run("sessions", "archive", id)
	if out := run("sessions", "list"); strings.Contains(out, id) {
		t.Errorf("an archived session is listed:\n%s", out)
	}
	if out := run("sessions", "list", "--archived", "--label", "team=b=c"); !strings.Contains(out, id) {
		t.Errorf("archived sessions:\n%s", out)
	}
	run("sessions", "archive", id, "--undo")
	if out := run("sessions", "list", "--state", "idle"); !strings.Contains(out, id) {
		t.Errorf("it is not back:\n%s", out)
	}
}
