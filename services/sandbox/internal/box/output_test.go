package box

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
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
			e.copyRest(p)
			_ = left.Close()
			synctest.Wait()
			if got := e.streams[i].size; got != int64(len("kept")) {
				t.Errorf("%d bytes of %s are kept", got, name)
			}
		}
	})
}
