package box

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutputIsInBulkWhileMuchComes(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int
		every time.Duration
		want  bool
	}{
		"a line now and then":                    {100, 50 * time.Millisecond, false},
		"many short lines":                       {100, 10 * time.Microsecond, false},
		"a large piece now and then":             {4 << 20, time.Second, false},
		"as much as a pipe takes, all the time":  {64 << 10, 100 * time.Microsecond, true},
		"short pieces, as many as a disk writes": {8 << 10, 20 * time.Microsecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p pace
				got := false
				for begun := time.Now(); time.Since(begun) < 100*time.Millisecond+3*c.every; <-time.After(c.every) {
					got = p.quick(c.bytes)
				}
				if got != c.want {
					t.Errorf("in bulk: %v", got)
				}
			})
		})
	}
}

// bulk is output of some windows' length, each of its numbers once.
func bulk(windows int) []byte {
	b := make([]byte, 0, windows*outputWindow)
	for n := uint32(0); len(b) < cap(b); n++ {
		b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return b
}

// addAll keeps output as it comes out of a pipe.
func addAll(e *Exec, all []byte) {
	e.limits = Limits{OutputBytes: int64(len(all)), FloodBytes: 2 * int64(len(all))}
	for piece := range slices.Chunk(all, keepSize) {
		e.add(Stdout, piece, e.limits)
	}
}

// came checks what a follower got that was cut off.
func came(t *testing.T, err error, got, want []byte) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes came, not the %d that were written", len(got), len(want))
	}
}

func TestAWriterInBulkStaysNearItsFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, want := newExec(nil, t.TempDir(), record{}), bulk(6)
		ctx, cancel := context.WithCancel(t.Context())
		var got []byte
		furthest := int64(0)
		followed := make(chan error)
		go func() {
			_, err := e.Follow(ctx, Offsets{}, func(p Piece) error {
				got = append(got, p.Data...)
				e.mu.Lock()
				furthest = max(furthest, e.streams[Stdout].size-p.Offset)
				e.mu.Unlock()
				return nil
			})
			followed <- err
		}()
		synctest.Wait()
		begun := time.Now()
		addAll(e, want)
		if took := time.Since(begun); took > 0 {
			t.Errorf("the writer waited %s in vain", took)
		}
		synctest.Wait()
		cancel()
		came(t, <-followed, got, want)
		if furthest > 2*outputWindow {
			t.Errorf("the writer was %d bytes ahead", furthest)
		}
		e.closeOutput()
	})
}

// Who does not read holds nobody up for long, nor loses anything.
func TestAFollowerThatStandsStillHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const windows = 5
		e, want := newExec(nil, t.TempDir(), record{}), bulk(windows)
		ctx, cancel := context.WithCancel(t.Context())
		reads, followed := make(chan struct{}), make(chan error)
		var got []byte
		go func() {
			_, err := e.Follow(ctx, Offsets{}, func(p Piece) error {
				<-reads
				got = append(got, p.Data...)
				return nil
			})
			followed <- err
		}()
		synctest.Wait()
		begun := time.Now()
		addAll(e, want)
		if took := time.Since(begun); took == 0 || took > windows*followPatience {
			t.Errorf("the writer waited %s", took)
		}
		close(reads)
		synctest.Wait()
		cancel()
		came(t, <-followed, got, want)
		e.closeOutput()
	})
}

// A writer is let go when who it waits for goes away.
func TestAWriterWaitsForNobodyWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, want := newExec(nil, t.TempDir(), record{}), bulk(3)
		gone := errors.New("gone")
		followed := make(chan error)
		go func() {
			_, err := e.Follow(t.Context(), Offsets{}, func(Piece) error {
				<-time.After(followPatience / 2)
				return gone
			})
			followed <- err
		}()
		synctest.Wait()
		begun := time.Now()
		addAll(e, want)
		if took := time.Since(begun); took > followPatience/2 {
			t.Errorf("the writer waited %s", took)
		}
		if err := <-followed; !errors.Is(err, gone) {
			t.Error(err)
		}
		e.closeOutput()
	})
}

// Who comes late, or again, or goes, gets each byte from where it asks on once and in order,
// wherever a window ends.
func TestFollowersComeAndGo(t *testing.T) {
	for _, more := range []int{-1, 0, 1} {
		e := newExec(&Node{o: Options{Now: time.Now}}, t.TempDir(), record{})
		want := append(bulk(2), 'x')[:2*outputWindow+more]
		var all sync.WaitGroup
		for n := range 4 {
			all.Go(func() {
				at, turns := Offsets{int64(n) * outputWindow / 2}, 0
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
		addAll(e, want)
		e.conclude(Exit{}, 0, false)
		all.Wait()
		e.closeOutput()
	}
}

// Who asks about a command, or follows it, does not wait for the disk with it.
func TestNobodyWaitsWhileOutputIsWrittenToDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExec(nil, t.TempDir(), record{})
		addAll(e, []byte("some"))
		busy, closed := make(chan struct{}), false
		e.streams[Stdout].passing.Go(func() { <-busy })
		nothing := io.NopCloser(strings.NewReader(""))
		go func() { e.endOutput(&ended{out: nothing, err: nothing}); closed = true }()
		synctest.Wait()
		if closed {
			t.Error("the output was closed while the disk was busy with it")
		}
		if !e.mu.TryLock() {
			t.Fatal("who asks about the command waits for the disk")
		}
		e.mu.Unlock()
		close(busy)
		synctest.Wait()
		if !closed {
			t.Error("the output is not closed")
		}
	})
}
