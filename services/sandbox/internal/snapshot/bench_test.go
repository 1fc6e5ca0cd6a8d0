package snapshot

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkQuietTree is a workspace of 10,000 files and 440 MB of which 20 files
// change between two snapshots. It reports the medians of its rounds, in
// milliseconds, and how far the store grows beyond the compressed changes.
func BenchmarkQuietTree(b *testing.B) {
	base := b.TempDir()
	dir, staging := filepath.Join(base, "workspace"), filepath.Join(base, "staging")
	must(b, os.Mkdir(staging, 0o700))
	fill(b, dir)
	tree, err := OpenTree(dir, staging, Owner{-1, -1})
	must(b, err)
	defer func() { _ = tree.Close() }()
	store := func(do func(s *Store)) time.Duration {
		begin := time.Now()
		s, err := Open(filepath.Join(base, "store"))
		must(b, err)
		do(s)
		must(b, s.Close())
		return time.Since(begin)
	}
	n := 0
	create := func() (made Snapshot, took time.Duration) {
		n++
		took = store(func(s *Store) {
			made, err = s.Create(b.Context(), tree, Request{ID: fmt.Sprintf("s%d", n), Now: time.Now()})
			must(b, err)
		})
		return made, took
	}
	_, first := create()
	time.Sleep(2 * settling) // the tree is quiet: no file is young
	var creates, restores, idles []time.Duration
	var growth int64
	for b.Loop() {
		stored := change(b, dir, n)
		before := fmt.Sprintf("s%d", n)
		made, took := create()
		creates, growth = append(creates, took), max(growth, made.Added-stored)
		_, took = create()
		idles = append(idles, took)
		restores = append(restores, store(func(s *Store) {
			_, err := s.Restore(b.Context(), tree, before)
			must(b, err)
		}))
	}
	b.ReportMetric(ms(first), "first-ms")
	b.ReportMetric(ms(median(creates)), "snapshot-ms")
	b.ReportMetric(ms(median(idles)), "unchanged-ms")
	b.ReportMetric(ms(median(restores)), "restore-ms")
	b.ReportMetric(float64(growth)/1024, "overhead-KiB")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// fill makes the tree: 9,990 files of 100 bytes to 70 KB in 500 folders, of words
// as in source code, and ten of 8 MB that do not compress.
func fill(b *testing.B, dir string) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		name := filepath.Join(dir, fmt.Sprintf("pkg%d/part%d/file%d.go", i%25, i%500, i))
		must(b, os.MkdirAll(filepath.Dir(name), 0o755))
		size := 100 + r.IntN(72_000)
		if i%1000 == 0 {
			must(b, os.WriteFile(name, noise(r, 8<<20), 0o644))
			continue
		}
		must(b, os.WriteFile(name, words(r, size), 0o644))
	}
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func words(r *rand.Rand, n int) []byte {
	var b []byte
	for len(b) < n {
		b = fmt.Appendf(b, "func name%d(value%d int) error {\n", r.IntN(5000), r.IntN(90))
	}
	return b[:n]
}

// change changes 20 files, and returns how much they are when compressed.
func change(b *testing.B, dir string, round int) (stored int64) {
	b.Helper()
	r := rand.New(rand.NewPCG(uint64(round), 3))
	for range 20 {
		i := r.IntN(10_000)
		content := words(r, 100+r.IntN(72_000))
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("pkg%d/part%d/file%d.go", i%25, i%500, i)), content, 0o644))
		stored += int64(len(encoder.EncodeAll(content, nil)))
	}
	return stored
}
