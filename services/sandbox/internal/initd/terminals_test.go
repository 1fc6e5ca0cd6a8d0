package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestTerminalsAreCounted(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ptmx"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := countTerminals(dir); n != 300 {
		t.Errorf("%d of 300", n)
	}
	if n := countTerminals(filepath.Join(dir, "none")); n != 0 {
		t.Errorf("%d of none", n)
	}
}
