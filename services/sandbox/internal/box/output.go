package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// pieceSize is the largest output in one Piece. With its framing, a piece still fits into the 64 KiB
// buffers of package rpc.
const pieceSize = 64<<10 - 256

// Offsets are positions in both outputs.
type Offsets [2]int64

// Piece is a part of the output.
type Piece struct {
	Stream int // Stdout or Stderr
	Offset int64
	Data   []byte // valid until send returns
}

// closeOutput closes the stream files after the last write. It may wait for the disk, so the caller must
// hold no lock.
func (e *Exec) closeOutput() {
	for i := range e.streams {
		s := &e.streams[i]
		if s.file == nil {
			continue
		}
		_ = s.file.Close()
		s.file = nil
	}
}

// copyOutput stores the output of a process. It closes the channel at the end.
func (e *Exec) copyOutput(p Process, l Limits) <-chan struct{} {
	var wg sync.WaitGroup
	for i, r := range [2]io.Reader{p.Stdout(), p.Stderr()} {
		if i == Stderr && p.Stderr() == nil {
			continue
		}
		wg.Go(func() { e.keep(i, r, l) })
	}
	copied := make(chan struct{})
	go func() { wg.Wait(); close(copied) }()
	return copied
}

// keepSize is how much output is read at once.
const keepSize = 128 << 10

var keepBuffers = sync.Pool{New: func() any { return new([keepSize]byte) }}

// keep always reads to the end, so that a command never hangs when its output is no longer stored.
func (e *Exec) keep(i int, from io.Reader, l Limits) {
	pooled := keepBuffers.Get().(*[keepSize]byte)
	defer keepBuffers.Put(pooled)
	buffer := pooled[:]
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			e.add(i, buffer[:n], l)
		}
		if err != nil {
			return
		}
	}
}

// add stores output of a stream; calls for one stream do not overlap. After output that could not be
// stored, nothing more is stored: a reader could not see the gap.
func (e *Exec) add(i int, b []byte, l Limits) {
	e.mu.Lock()
	e.written += int64(len(b))
	flood := e.written > l.FloodBytes
	if room := l.OutputBytes - e.kept; int64(len(b)) > room {
		b = b[:max(room, 0)]
	}
	if e.unkept {
		b = nil
	}
	e.kept += int64(len(b))
	e.mu.Unlock()
	if len(b) > 0 {
		n, err := e.write(i, b)
		e.mu.Lock()
		if err != nil && !e.unkept {
			e.unkept = true
			e.node.o.Log.Error("cannot keep the output of a command", "call_id", e.rec.CallID, "error", err)
		}
		e.streams[i].size += int64(n)
		e.kept -= int64(len(b) - n)
		e.wake()
		e.mu.Unlock()
	}
	if flood {
		e.stop(overLimit(OutputLimit, hitFlood, fmt.Sprintf("the command was ended because it wrote more than %d bytes of output. Write to a file instead", l.FloodBytes)))
	}
}

// write appends to the file of a stream. It makes the file for the first byte: most commands write to one
// stream at most.
func (e *Exec) write(i int, b []byte) (n int, err error) {
	s := &e.streams[i]
	if s.file == nil {
		if err := e.makeFolder(); err != nil {
			return 0, err
		}
		s.file, err = os.OpenFile(filepath.Join(e.dir, streamFiles[i]), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return 0, err
		}
	}
	return s.file.WriteAt(b, s.size)
}

// outputTimeout limits the reading of the output after a command's end. Nothing can still write then; the
// limit guards against a kernel that does not report the end.
const outputTimeout = 5 * time.Second

// awaitOutput waits until all output of an ended command is stored.
func (e *Exec) awaitOutput(p Process, copied <-chan struct{}) {
	defer e.boundOutput(p)()
	<-copied
}

// copyRest stores all output of an ended command. It reads both streams at once, so that one without an end
// does not block the other.
func (e *Exec) copyRest(p Process) {
	if e.keepNow(Stdout, p.Stdout()) && e.keepNow(Stderr, p.Stderr()) {
		e.endOutput(p)
		return
	}
	defer e.boundOutput(p)()
	var other sync.WaitGroup
	other.Go(func() { e.keep(Stderr, p.Stderr(), e.limits) })
	e.keep(Stdout, p.Stdout(), e.limits)
	other.Wait()
}

// boundOutput limits the time of reading. The caller calls the returned function when all is read.
func (e *Exec) boundOutput(p Process) (read func()) {
	late := time.AfterFunc(outputTimeout, func() {
		e.node.o.Log.Error("the output of an ended command does not end", "call_id", e.rec.CallID)
		closeOutputs(p)
	})
	return func() {
		late.Stop()
		e.endOutput(p)
	}
}

// endOutput closes the pipes and the files of the streams.
func (e *Exec) endOutput(p Process) {
	closeOutputs(p)
	e.closeOutput()
}

// prompt is an output that reports when there is nothing to read yet.
type prompt interface {
	// ReadNow is Read, but returns wait instead of waiting.
	ReadNow(b []byte) (n int, wait bool, err error)
}

// promptReads is how often keepNow reads without waiting: more than a pipe holds.
const promptReads = 8

// keepNow stores the available output of a stream and reports whether the stream is at its end.
func (e *Exec) keepNow(i int, from io.Reader) bool {
	f, ok := from.(prompt)
	if !ok {
		return false
	}
	pooled := keepBuffers.Get().(*[keepSize]byte)
	defer keepBuffers.Put(pooled)
	for range promptReads {
		n, wait, err := f.ReadNow(pooled[:])
		if n > 0 {
			e.add(i, pooled[:n], e.limits)
		}
		if wait || err != nil {
			return err != nil
		}
	}
	return false
}

// closeOutputs ends the reading of a command's output.
func closeOutputs(p Process) {
	_ = p.Stdout().Close()
	if p.Stderr() != nil { // there is none beside a terminal
		_ = p.Stderr().Close()
	}
}

// Follow sends the output from some offsets on, and returns the command's outcome once all of it is sent.
// An error of send or of the context ends Follow but not the command.
func (e *Exec) Follow(ctx context.Context, from Offsets, send func(Piece) error) (Outcome, error) {
	var files [2]*os.File // they stay readable even if the exec is forgotten meanwhile
	defer func() {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	var buffer []byte // most commands write little
	for {
		e.mu.Lock()
		sizes := Offsets{e.streams[Stdout].size, e.streams[Stderr].size}
		end, changed := e.rec.Outcome, e.changed
		e.mu.Unlock()
		sent := false
		for i := range files {
			if from[i] >= sizes[i] {
				continue
			}
			if files[i] == nil {
				f, err := e.openOutput(i)
				if err != nil {
					return Outcome{}, err
				}
				files[i] = f
			}
			if buffer == nil {
				buffer = make([]byte, pieceSize)
			}
			n, err := files[i].ReadAt(buffer[:min(pieceSize, sizes[i]-from[i])], from[i])
			if n == 0 {
				return Outcome{}, fmt.Errorf("read the kept output: %w", err)
			}
			if err := send(Piece{Stream: i, Offset: from[i], Data: buffer[:n]}); err != nil {
				return Outcome{}, err
			}
			from[i] += int64(n)
			sent = true
		}
		if sent {
			continue
		}
		if end != nil {
			return *end, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		}
	}
}

// openOutput opens the file of a stream.
func (e *Exec) openOutput(i int) (*os.File, error) {
	f, err := os.Open(filepath.Join(e.dir, streamFiles[i]))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrAcknowledged // by a concurrent call
	}
	return f, err
}
