package box

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// slowDeadline is an input whose deadline takes its time to be set: until another call
// removes it, or a moment has passed.
type slowDeadline struct {
	*os.File
	begun, goOn, set chan struct{}
	once             sync.Once
}

func (s *slowDeadline) release() { s.once.Do(func() { close(s.goOn) }) }

func (s *slowDeadline) SetWriteDeadline(at time.Time) error {
	if at.IsZero() {
		err := s.File.SetWriteDeadline(at)
		s.release()
		<-s.set
		return err
	}
	close(s.begun)
	time.AfterFunc(50*time.Millisecond, s.release)
	<-s.goOn
	defer close(s.set)
	return s.File.SetWriteDeadline(at)
}

// Write implements io.Writer: the caller goes away as all is written.
func (s *slowDeadline) Write(b []byte) (int, error) {
	n, err := s.File.Write(b)
	<-s.begun
	return n, err
}

type reading struct {
	ended
	in io.WriteCloser
}

func (p *reading) Stdin() io.WriteCloser { return p.in }

// A writer that goes away as its write ends leaves the input to the next one.
func TestAWriterThatGoesAwayLeavesTheInputOpen(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	in := &slowDeadline{File: w, begun: make(chan struct{}), goOn: make(chan struct{}), set: make(chan struct{})}
	e := newExec(&Node{}, "", record{})
	e.stdin, e.process = true, &reading{in: in}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for e.Write(ctx, []byte("first"), false) != nil { // of two ways to go on either may be taken
		select {
		case <-in.begun:
			t.Fatal("it was written, and is told as if not")
		default:
		}
	}
	if err := e.Write(t.Context(), []byte("second"), true); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "firstsecond" || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("it read %q, %v", got, err)
	}
}

// Where a program does not read its terminal there is no room for the end of its input either.
func TestTheEndOfATerminalsInputWaitsNoLongerThanItsCaller(t *testing.T) {
	master, slave, err := terminal.Open(24, 80)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(slave) }()
	if err := unix.SetNonblock(master, true); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(master), "terminal")
	e := newExec(&Node{}, "", record{})
	e.stdin, e.process = true, &reading{in: &terminal.Input{File: f}}
	for _, end := range []bool{false, true} {
		data := bytes.Repeat([]byte("line\n"), 1<<16)
		if end {
			data = nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		told := make(chan error, 1)
		go func() { told <- e.Write(ctx, data, end) }()
		select {
		case err := <-told:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the end %v: %v", end, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("the end %v: it still waits", end)
			_ = f.Close()
			return
		}
	}
	_ = f.Close()
}
