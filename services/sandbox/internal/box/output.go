package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// output is what a command has written, as far as it is kept. It is safe for concurrent use.
type output struct {
	dir   string
	call  string // the command's id, for the log
	log   *slog.Logger
	flood func(most int64) // called when a command has written more than the most
	pipe  *pipe            // of a piped command, whose output is not kept

	mu      sync.Mutex // guards what follows
	streams [2]stream
	kept    int64         // both streams
	written int64         // kept or not
	unkept  bool          // some could not be stored, as on a full disk; nothing is stored since
	changed chan struct{} // closed and recreated when there is more to see
}

// stream is one output of a command.
type stream struct {
	file *os.File // nil once it has ended
	size int64
}

// find reads how much output of an earlier run is on disk.
func (o *output) find() error {
	for i, name := range streamFiles {
		st, err := os.Stat(filepath.Join(o.dir, name))
		switch {
		case err == nil:
			o.streams[i].size = st.Size()
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	return nil
}

// counts returns how many bytes are kept, and how many were written. full means that the disk kept no more.
func (o *output) counts() (kept, written int64, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept, o.written, o.unkept
}

// sizes returns how much of each stream is kept.
func (o *output) sizes() Offsets {
	o.mu.Lock()
	defer o.mu.Unlock()
	return Offsets{o.streams[Stdout].size, o.streams[Stderr].size}
}

// more returns a channel that is closed when there is more to see.
func (o *output) more() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// wake wakes all waiters: there is more to see.
func (o *output) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broadcast()
}

// broadcast is wake, with mu held.
func (o *output) broadcast() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// close closes the stream files after the last write. It may wait for the disk, so the caller must
// hold no lock.
func (o *output) close() {
	for i := range o.streams {
		s := &o.streams[i]
		if s.file == nil {
			continue
		}
		_ = s.file.Close()
		s.file = nil
	}
}

// copy stores the output of a process. It closes the channel at the end.
func (o *output) copy(p Process, l Limits) <-chan struct{} {
	var wg sync.WaitGroup
	for i, r := range [2]io.Reader{p.Stdout(), p.Stderr()} {
		if i == Stderr && p.Stderr() == nil {
			continue
		}
		wg.Go(func() { o.keep(i, r, l) })
	}
	copied := make(chan struct{})
	go func() { wg.Wait(); close(copied) }()
	return copied
}

// keepSize is how much output is read at once.
const keepSize = 128 << 10

var keepBuffers = sync.Pool{New: func() any { return new([keepSize]byte) }}

// keep always reads to the end, so that a command never hangs when its output is no longer stored.
func (o *output) keep(i int, from io.Reader, l Limits) {
	pooled := keepBuffers.Get().(*[keepSize]byte)
	defer keepBuffers.Put(pooled)
	buffer := pooled[:]
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			o.add(i, buffer[:n], l)
		}
		if err != nil {
			return
		}
	}
}

// add stores output of a stream; calls for one stream do not overlap. After output that could not be
// stored, nothing more is stored: a reader could not see the gap.
func (o *output) add(i int, b []byte, l Limits) {
	o.mu.Lock()
	o.written += int64(len(b))
	flood := o.written > l.FloodBytes
	if o.pipe != nil {
		o.pass(i, b)
		if flood {
			o.flood(l.FloodBytes)
		}
		return
	}
	if room := l.OutputBytes - o.kept; int64(len(b)) > room {
		b = b[:max(room, 0)]
	}
	if o.unkept {
		b = nil
	}
	o.kept += int64(len(b))
	o.mu.Unlock()
	if len(b) > 0 {
		n, err := o.write(i, b)
		o.mu.Lock()
		if err != nil && !o.unkept {
			o.unkept = true
			o.log.Error("cannot keep the output of a command", "call_id", o.call, "error", err)
		}
		o.streams[i].size += int64(n)
		o.kept -= int64(len(b) - n)
		o.broadcast()
		o.mu.Unlock()
	}
	if flood {
		o.flood(l.FloodBytes)
	}
}

// pass hands output to the pipe. mu is held, and released.
func (o *output) pass(i int, b []byte) {
	o.kept += int64(len(b))
	from := o.streams[i].size
	o.streams[i].size += int64(len(b))
	o.mu.Unlock()
	o.pipe.put(i, from, b)
}

// write appends to the file of a stream. It makes the file for the first byte: most commands write to one
// stream at most.
func (o *output) write(i int, b []byte) (n int, err error) {
	s := &o.streams[i]
	if s.file == nil {
		if err := makeFolder(o.dir); err != nil {
			return 0, err
		}
		s.file, err = os.OpenFile(filepath.Join(o.dir, streamFiles[i]), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return 0, err
		}
	}
	return s.file.WriteAt(b, s.size)
}

// outputTimeout limits the reading of the output after a command's end. Nothing can still write then; the
// limit guards against a kernel that does not report the end.
const outputTimeout = 5 * time.Second

// await waits until all output of an ended command is stored.
func (o *output) await(p Process, copied <-chan struct{}) {
	defer o.bound(p)()
	<-copied
}

// copyRemaining stores all output of an ended command. It reads both streams at once, so that one without an end
// does not block the other.
func (o *output) copyRemaining(p Process, l Limits) {
	if o.keepNow(Stdout, p.Stdout(), l) && o.keepNow(Stderr, p.Stderr(), l) {
		o.end(p)
		return
	}
	defer o.bound(p)()
	var other sync.WaitGroup
	other.Go(func() { o.keep(Stderr, p.Stderr(), l) })
	o.keep(Stdout, p.Stdout(), l)
	other.Wait()
}

// bound limits the time of reading. The caller calls the returned function when all is read.
func (o *output) bound(p Process) (read func()) {
	late := time.AfterFunc(outputTimeout, func() {
		o.log.Error("the output of an ended command does not end", "call_id", o.call)
		closeOutputs(p)
	})
	return func() {
		late.Stop()
		o.end(p)
	}
}

// end closes the pipes and the files of the streams.
func (o *output) end(p Process) {
	closeOutputs(p)
	o.close()
}

// prompt is an output that reports when there is nothing to read yet.
type prompt interface {
	// ReadNow is Read, but returns wait instead of waiting.
	ReadNow(b []byte) (n int, wait bool, err error)
}

// promptReads is how often keepNow reads without waiting: more than a pipe holds.
const promptReads = 8

// keepNow stores the available output of a stream and reports whether the stream is at its end.
func (o *output) keepNow(i int, from io.Reader, l Limits) bool {
	f, ok := from.(prompt)
	if !ok {
		return false
	}
	pooled := keepBuffers.Get().(*[keepSize]byte)
	defer keepBuffers.Put(pooled)
	for range promptReads {
		n, wait, err := f.ReadNow(pooled[:])
		if n > 0 {
			o.add(i, pooled[:n], l)
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
	if e.Piped() {
		return e.followPipe(ctx, send)
	}
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
		more := e.output.more()
		end := e.Outcome() // before the sizes: it is published once all output is kept
		sizes := e.output.sizes()
		sent := false
		for i := range files {
			if from[i] >= sizes[i] {
				continue
			}
			if files[i] == nil {
				f, err := e.output.open(i)
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
		case <-more:
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		}
	}
}

// open opens the file of a stream.
func (o *output) open(i int) (*os.File, error) {
	f, err := os.Open(filepath.Join(o.dir, streamFiles[i]))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrAcknowledged // by a concurrent call
	}
	return f, err
}
