package box

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/smalldisk"
)

// What a command leaves behind, where that cannot be ended, may keep one output from ever
// ending: the other one is kept all the same.
func TestOneOutputThatDoesNotEndLosesNothingOfTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{o: Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}}
		for i, name := range streamFiles {
			e := newExec(n, t.TempDir(), record{})
			e.limits = Limits{OutputBytes: 100, FloodBytes: 1000}
			held, left := io.Pipe()
			said, writes := io.Pipe()
			go func() { _, _ = io.WriteString(writes, "kept"); _ = writes.Close() }()
			p := &ended{out: held, err: said}
			if i == Stdout {
				p.out, p.err = p.err, p.out
			}
			e.output.copyRemaining(p, e.limits)
			_ = left.Close()
			synctest.Wait()
			if got := e.output.streams[i].size; got != int64(len("kept")) {
				t.Errorf("%d bytes of %s are kept", got, name)
			}
		}
	})
}

// A full disk takes the rest of the output, which is told, and not something in its midst.
func TestAFullDiskEndsWhatIsKept(t *testing.T) {
	dir := smalldisk.New(t, "size=1m")
	var log strings.Builder
	n := &Node{o: Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now}}
	e := newExec(n, filepath.Join(dir, "exec"), record{})
	e.limits = Limits{MemoryBytes: 1, OutputBytes: 1 << 30, FloodBytes: 1 << 30}
	pad := filepath.Join(dir, "pad")
	if err := os.WriteFile(pad, make([]byte, 512<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	written := numbers(2 << 20)
	for at := 0; at < len(written); at += keepSize {
		if at == 1<<20 {
			if err := os.Remove(pad); err != nil { // there is room again
				t.Fatal(err)
			}
		}
		e.output.add(Stdout, written[at:at+keepSize], e.limits)
	}
	e.output.close()
	e.conclude(Exit{}, 0, false)
	kept, err := os.ReadFile(filepath.Join(dir, "exec", streamFiles[Stdout]))
	if err != nil || len(kept) == 0 || int64(len(kept)) != e.output.streams[Stdout].size || !bytes.HasPrefix(written, kept) {
		t.Errorf("%d bytes are kept, %d are said to be, %v", len(kept), e.output.streams[Stdout].size, err)
	}
	o := e.Outcome()
	if !o.Truncated || len(o.Hits) != 1 || !strings.Contains(o.Hits[0].Message, "disk") {
		t.Errorf("%+v", o)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines in the log", lines)
	}
}

// A follower that comes late, or again, gets each byte from where it asks on once and in order.
func TestFollowersComeAndGo(t *testing.T) {
	const third = 5*keepSize + 1
	e := newExec(&Node{o: Options{Now: time.Now}}, t.TempDir(), record{})
	want := numbers(3 * third)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			at, turns := Offsets{int64(n) * third}, 0
			for {
				pieces := 0
				_, err := e.Follow(t.Context(), at, func(p Piece) error {
					if p.Offset != at[Stdout] || !bytes.Equal(p.Data, want[p.Offset:p.Offset+int64(len(p.Data))]) {
						t.Errorf("at %d came what is not at %d", at[Stdout], p.Offset)
					}
					if pieces++; pieces > 50 && turns < 5 {
						return context.Canceled // it did not take this one
					}
					at[Stdout] += int64(len(p.Data))
					return nil
				})
				if turns++; err == nil {
					break
				}
			}
			if at[Stdout] != int64(len(want)) {
				t.Errorf("%d bytes of %d came", at[Stdout], len(want))
			}
		})
	}
	e.limits = Limits{OutputBytes: int64(len(want)), FloodBytes: 2 * int64(len(want))}
	for piece := range slices.Chunk(want, keepSize) {
		e.output.add(Stdout, piece, e.limits)
	}
	e.conclude(Exit{}, 0, false)
	all.Wait()
	e.output.close()
}

// numbers returns so many bytes of numbers, each number once.
func numbers(bytes int) (b []byte) {
	for n := uint32(0); len(b) < bytes; n++ {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b[:bytes]
}
