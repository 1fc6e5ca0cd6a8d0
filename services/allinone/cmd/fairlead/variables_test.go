package main

import (
	"os"
	"strings"
	"testing"
)

func TestVariablesAreSetListedWithoutValuesAndDeleted(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	address := serverOf(t, data)
	command := func(in string, args ...string) (out, errs string, code int) {
		return fairlead(t.Context(), in, map[string]string{"PATH": os.Getenv("PATH"), "HOME": data}, append([]string{"variables"}, append(args, "--server", address)...)...)
	}
	const value = "s3cret-of-mine"
	if out, errs, code := command(value+"\n", "set", "TOKEN"); code != 0 || !strings.Contains(out, "TOKEN is set") {
		t.Fatalf("set: exit code %d: %s%s", code, out, errs)
	}
	for _, args := range [][]string{{"list"}, {"list", "--json"}} {
		if out, errs, code := command("", args...); code != 0 || !strings.Contains(out, "TOKEN") || strings.Contains(out+errs, value) {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
		}
	}
	if out, errs, code := command("x", "set", "a name that is none"); code == 0 || errs == "" || strings.Contains(out, "is set") {
		t.Errorf("a bad name: exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := command(strings.Repeat("x", maxVariable), "set", "LARGE"); code == 0 || errs == "" || strings.Contains(out, "is set") {
		t.Errorf("a large value: exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := command("", "delete", "TOKEN"); code != 0 {
		t.Errorf("delete: exit code %d: %s%s", code, out, errs)
	}
	if out, _, _ := command("", "list"); strings.Contains(out, "TOKEN") {
		t.Errorf("it is still there: %s", out)
	}
}
