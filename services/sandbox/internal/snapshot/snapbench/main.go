// Command snapbench measures snapshots of a workspace of 10,000 files and 440 MB, 20 of which change
// between two snapshots. `make bench` runs it and it prints one JSON object. It is a separate program
// because the store is internal to the sandbox service.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/fairlead/fairlead/services/sandbox/internal/sampletree"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

// result is what is printed. Times are in nanoseconds.
type result struct {
	Files, Bytes int64
	First        time.Duration   // the snapshot of everything
	Walks        []time.Duration // a look at every file's status, for comparison
	Snapshots    []time.Duration // with 20 files changed
	Unchanged    []time.Duration // with none
	Restores     []time.Duration // of the 20 files
	// Growth is the most that the store grew beyond the compressed changed files.
	Growth int64
}

func main() {
	rounds := flag.Int("rounds", 30, "how often to measure")
	parent := flag.String("dir", "", "a folder on the disk that is measured")
	flag.Parse()
	if err := run(context.Background(), *parent, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "snapbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, parent string, rounds int) error {
	base, err := os.MkdirTemp(parent, "snapbench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(base) }()
	b := &bench{ctx: ctx, base: base, dir: filepath.Join(base, "workspace")}
	if err := os.Mkdir(filepath.Join(base, "staging"), 0o700); err != nil {
		return err
	}
	if err := sampletree.Fill(b.dir); err != nil {
		return err
	}
	if err := b.measure(rounds); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(b.result)
}

// bench is a workspace with its store.
type bench struct {
	ctx       context.Context //nolint:containedctx // lives as long as one run
	base, dir string
	made      int
	result    result
}

// quiet is how long a file rests before it counts as untouched.
const quiet = 100 * time.Millisecond

func (b *bench) measure(rounds int) error {
	first, took, err := b.create()
	if err != nil {
		return err
	}
	b.result.First, b.result.Files, b.result.Bytes = took, first.Files, first.Bytes
	time.Sleep(quiet) //nolint:forbidigo // what is measured is a quiet tree
	for round := range rounds {
		if err := b.round(round); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) round(round int) error {
	r := &b.result
	took, err := b.walk()
	if err != nil {
		return err
	}
	r.Walks = append(r.Walks, took)
	stored, err := b.change(round)
	if err != nil {
		return err
	}
	changed, took, err := b.create()
	if err != nil {
		return err
	}
	r.Snapshots, r.Growth = append(r.Snapshots, took), max(r.Growth, changed.Added-stored)
	if _, took, err = b.create(); err != nil {
		return err
	}
	r.Unchanged = append(r.Unchanged, took)
	took, err = b.open(func(s *snapshot.Store, t *snapshot.Tree) error {
		// Always to the first: what a round changed is all that differs from it.
		done, err := s.Restore(b.ctx, t, "s1")
		if err == nil && (done.Written == 0 || done.Written > changes) {
			err = fmt.Errorf("a restore of %d files wrote %d", changes, done.Written)
		}
		return err
	})
	r.Restores = append(r.Restores, took)
	return err
}

// open opens everything, as a request does, and says how long all of it took.
func (b *bench) open(do func(*snapshot.Store, *snapshot.Tree) error) (time.Duration, error) {
	begun := time.Now()
	s, err := snapshot.Open(filepath.Join(b.base, "store"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }()
	t, err := snapshot.OpenTree(b.dir, filepath.Join(b.base, "staging"), snapshot.Owner{UID: -1, GID: -1})
	if err != nil {
		return 0, err
	}
	defer func() { _ = t.Close() }()
	err = do(s, t)
	return time.Since(begun), err
}

// id is the last snapshot's.
func (b *bench) id() string { return fmt.Sprintf("s%d", b.made) }

func (b *bench) create() (made snapshot.Snapshot, took time.Duration, err error) {
	b.made++
	took, err = b.open(func(s *snapshot.Store, t *snapshot.Tree) (err error) {
		made, err = s.Create(b.ctx, t, snapshot.Request{ID: b.id(), Now: time.Now()})
		return err
	})
	return made, took, err
}

// walk looks at every file.
func (b *bench) walk() (time.Duration, error) {
	begun := time.Now()
	err := filepath.WalkDir(b.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = d.Info()
		}
		return err
	})
	return time.Since(begun), err
}

// changes is how many files a round writes; two of them may be the same.
const changes = 20

// change writes them, and returns how much they are when compressed.
func (b *bench) change(round int) (stored int64, err error) {
	r := rand.New(rand.NewPCG(uint64(round), 3)) //nolint:gosec // the same changes each time
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return 0, err
	}
	for range changes {
		i := r.IntN(sampletree.Files)
		if i%1000 == 0 {
			i++
		}
		content := sampletree.Words(r, 100+r.IntN(72_000))
		if err := os.WriteFile(sampletree.Name(b.dir, i), content, 0o600); err != nil {
			return 0, err
		}
		stored += int64(len(encoder.EncodeAll(content, nil)))
	}
	return stored, encoder.Close()
}
