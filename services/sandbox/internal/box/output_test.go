package box

import (
	"io"
	"log/slog"
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
			e.copyRest(p)
			_ = left.Close()
			synctest.Wait()
			if got := e.streams[i].size; got != int64(len("kept")) {
				t.Errorf("%d bytes of %s are kept", got, name)
			}
		}
	})
}
