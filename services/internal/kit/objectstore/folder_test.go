package objectstore

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// left is what a folder still has.
func left(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A deletion that finds no object of a session has to leave nothing of it: neither the folders of
// an export that was ended, nor a part of an object whose writer was killed.
func TestAFolderKeepsNothingOfWhatWasNeverWhole(t *testing.T) {
	dir := t.TempDir()
	s, err := Open("file://"+dir, Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Put(ended, "tenant/session/1/packs/a", strings.NewReader("1"), 1); err == nil {
		t.Error("an object was written whose writer had ended")
	}
	if got := left(t, dir); len(got) > 0 {
		t.Errorf("a write that was ended leaves %v", got)
	}

	part := filepath.Join(dir, "tenant", "session", "1", "packs", temporary+"123")
	if err := os.MkdirAll(filepath.Dir(part), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part, []byte("of another user"), 0o600); err != nil {
		t.Fatal(err)
	}
	if keys, err := s.List(t.Context(), "tenant/session/"); err != nil || len(keys) > 0 {
		t.Errorf("%v, %v", keys, err)
	}
	if got := left(t, dir); len(got) > 0 {
		t.Errorf("a writer that was killed leaves %v", got)
	}
}

func TestWhatIsBeingWrittenIsNotTakenForALeftover(t *testing.T) {
	s, err := Open("file://"+t.TempDir(), Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Put(t.Context(), "a/b", r, 2) }()
	for _, c := range []string{"1", "2"} {
		if _, err := w.Write([]byte(c)); err != nil { // it is being written from the first byte on
			t.Error(err)
		}
		if keys, err := s.List(t.Context(), "a/"); err != nil || len(keys) > 0 {
			t.Errorf("%v, %v", keys, err)
		}
	}
	_ = w.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := get(t, s, "a/b"); got != "12" {
		t.Errorf("it has %q", got)
	}
}
