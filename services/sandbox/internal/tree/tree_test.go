package tree

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/erase"
)

// clock is a time that tests move.
type clock struct{ now time.Time }

func openStore(t *testing.T, dir string, now *clock, l Limits) *Store {
	t.Helper()
	s, err := Open(Options{
		Dir: filepath.Join(dir, "trees"), Covers: filepath.Join(dir, "covers"), Limits: l,
		Leftovers: erase.NewLater(slog.New(slog.DiscardHandler)), Now: func() time.Time { return now.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func archive(t *testing.T, text string) (digest string, content []byte) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: "f", Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
	if _, bad := w.Write([]byte(text)); errors.Join(err, bad, w.Close()) != nil {
		t.Fatal(err, bad)
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:]), b.Bytes()
}

func (s *Store) put(t *testing.T, text string) (string, error) {
	t.Helper()
	digest, content := archive(t, text)
	_, err := s.Put(t.Context(), digest, bytes.NewReader(content))
	return digest, err
}

var wide = Limits{Bytes: 1 << 20, Count: 3, Keep: 2 * time.Hour, TreeBytes: 1 << 16, TreeFiles: 10}

func TestUnusedTreesAreRemovedAndUsedOnesStay(t *testing.T) {
	now := &clock{time.Now()}
	dir := t.TempDir()
	s := openStore(t, dir, now, wide)
	var digests []string
	for _, text := range []string{"idle", "shown", "running"} {
		d, err := s.put(t, text)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d)
	}
	for range 5 {
		now.now = now.now.Add(time.Hour)
		if _, err := s.Mounts([]box.Tree{{Name: "x", Digest: digests[1]}}); err != nil {
			t.Error(err)
		}
		s.Tidy(digests[2:])
	}
	if s.Has(digests[0]) || !s.Has(digests[1]) || !s.Has(digests[2]) {
		t.Errorf("there are %v", s.all)
	}
	// A restart remembers when each was used.
	now.now = now.now.Add(90 * time.Minute)
	s = openStore(t, dir, now, wide)
	if s.Tidy(nil); !s.Has(digests[1]) {
		t.Error("one that was used is gone after a restart")
	}
}

func TestAFullNodeForgetsWhatWasUnusedForLongest(t *testing.T) {
	now := &clock{time.Now()}
	s := openStore(t, t.TempDir(), now, wide)
	var digests []string
	for _, text := range []string{"a", "b", "c"} {
		d, err := s.put(t, text)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d)
		now.now = now.now.Add(10 * time.Minute)
	}
	if _, err := s.put(t, "d"); !errors.Is(err, ErrFull) {
		t.Errorf("while all are in use: %v", err)
	}
	now.now = now.now.Add(35 * time.Minute)
	if _, err := s.put(t, "d"); err != nil {
		t.Error(err)
	}
	if s.all[digests[0]] != nil || s.all[digests[1]] == nil {
		t.Errorf("there are %v", s.all)
	}
	if left, err := os.ReadDir(filepath.Join(s.o.Dir, drafts)); err != nil || len(left) > 0 {
		t.Errorf("drafts: %v, %v", left, err)
	}
}

// A sandbox may still show the folder of a tree that was removed.
func TestATreeThatComesBackHasAnotherFolder(t *testing.T) {
	now := &clock{time.Now()}
	s := openStore(t, t.TempDir(), now, wide)
	source := func() string {
		d, err := s.put(t, "a")
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Mounts([]box.Tree{{Name: "x", Digest: d}})
		if err != nil {
			t.Fatal(err)
		}
		return all[1].Source
	}
	first := source()
	now.now = now.now.Add(3 * time.Hour)
	s.Tidy(nil)
	if again := source(); again == first {
		t.Error("it has the same folder")
	}
}

func TestCallersAtOnceMakeATreeOnce(t *testing.T) {
	s := openStore(t, t.TempDir(), &clock{time.Now()}, wide)
	digest, content := archive(t, "a")
	made := make(chan bool, 8)
	var all sync.WaitGroup
	for range cap(made) {
		all.Go(func() {
			created, err := s.Put(t.Context(), digest, bytes.NewReader(content))
			if err != nil {
				t.Error(err)
			}
			made <- created
		})
	}
	all.Wait()
	close(made)
	n := 0
	for created := range made {
		if created {
			n++
		}
	}
	if left, err := os.ReadDir(s.o.Dir); n != 1 || err != nil || len(left) != 2 { // and the drafts
		t.Errorf("it was made %d times: %v, %v", n, left, err)
	}
}
