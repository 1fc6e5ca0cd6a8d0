package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSwapIsClosedOrThereIsNone(t *testing.T) {
	t.Parallel()
	const columns = "Filename\tType\tSize\tUsed\tPriority\n"
	for _, tc := range []struct {
		name      string
		accounted bool
		list      string // of what the machine swaps to; empty: it cannot
		want      string
	}{
		{"the kernel accounts for it", true, columns + "/swap\tfile\t1\t0\t-2\n", ""},
		{"the kernel cannot swap", false, "", ""},
		{"the machine has none", false, columns, ""},
		{"the machine has swap without accounting", false, columns + "/swap\tfile\t1\t0\t-2\n", "swapaccount=1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			list, limit := filepath.Join(dir, "swaps"), filepath.Join(dir, "limit")
			if tc.list != "" {
				put(t, list, tc.list)
			}
			if tc.accounted {
				put(t, limit, "max")
			}
			err := closeSwap(dir, "limit", "0", list)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the answer is %v", err)
			}
			if got, err := os.ReadFile(limit); tc.accounted && (err != nil || string(got) != "0") {
				t.Errorf("the limit is %q, %v", got, err)
			}
		})
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
