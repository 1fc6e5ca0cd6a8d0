package forks

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// written is a file that somebody has open for writing, so that no lease is to be had.
func written(t *testing.T) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	w, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = w.Close(), r.Close() })
	return r
}

func TestNobodyIsWaitedForLong(t *testing.T) {
	const slack = 20 * Patience // of a busy machine, and far less than a hundred files would take one after the other
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		await       func(f *os.File)
		least, most time.Duration
	}{
		"one file": {Await, Patience, Patience + slack},
		"many files together": {func(f *os.File) {
			w := Begin()
			for range 100 {
				w.Await(t.Context(), f)
			}
		}, Patience, Patience + slack},
		"for somebody who has left": {func(f *os.File) { Wait{time.Now().Add(time.Hour)}.Await(gone, f) }, 0, slack},
	} {
		t.Run(name, func(t *testing.T) {
			f := written(t)
			began := time.Now()
			tc.await(f)
			if took := time.Since(began); took < tc.least || took > tc.most {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestWhereNobodyKnowsWhoWritesNobodyIsWaitedFor(t *testing.T) {
	f := written(t)
	if !leased(f) {
		t.Skip("it is so here")
	}
	was := unleased
	t.Cleanup(func() { unleased = was })
	unleased = append(unleased, kind(t, f))
	began := time.Now()
	Wait{began.Add(time.Hour)}.Await(t.Context(), f)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

func kind(t *testing.T, f *os.File) int64 {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		t.Fatal(err)
	}
	return fs.Type
}
