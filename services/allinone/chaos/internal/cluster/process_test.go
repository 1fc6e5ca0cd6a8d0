package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWhatLogsTell(t *testing.T) {
	for _, c := range []struct {
		name, log      string
		panicked, race bool
	}{
		{"a log of nothing special", `{"msg":"serving"}` + "\n", false, false},
		{"a panic that ended the program", "{}\npanic: runtime error\n", true, false},
		{"a panic that was recovered", `{"msg":"recovered","panic":"nil map"}` + "\n", true, false},
		{"an error of the runtime", "{}\nfatal error: concurrent map writes\n", true, false},
		{"a data race", "{}\n==================\nWARNING: DATA RACE\nWrite at 0x1 by goroutine 7:\n", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Process{Name: "p", log: filepath.Join(t.TempDir(), "log")}
			if err := os.WriteFile(p.log, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if p.Panicked() != c.panicked || p.Raced() != c.race {
				t.Errorf("panicked %t, raced %t", p.Panicked(), p.Raced())
			}
			cl := &Cluster{Sandbox: p, Gateway: &Process{log: filepath.Join(t.TempDir(), "none")}}
			if got, want := cl.Logged((*Process).Raced), []string{"p (" + p.log + ")"}; c.race != slices.Equal(got, want) {
				t.Errorf("programs with a race: %v", got)
			}
		})
	}
}
