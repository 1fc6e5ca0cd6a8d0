package box

import (
	"context"
	"sync"
)

// pipe passes a command's output to the one stream that follows it. Nothing is kept: the command waits until
// its output is read.
type pipe struct {
	pieces chan Piece
	read   chan struct{} // the last piece was read
	gone   chan struct{} // closed when there is no reader any more
	end    func()
}

func newPipe() *pipe {
	p := &pipe{pieces: make(chan Piece), read: make(chan struct{}), gone: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.gone) })
	return p
}

// put waits until the output is read, or until there is no reader. Calls for one stream do not overlap.
func (p *pipe) put(stream int, offset int64, b []byte) {
	for len(b) > 0 {
		n := min(len(b), pieceSize)
		select {
		case p.pieces <- Piece{Stream: stream, Offset: offset, Data: b[:n]}:
		case <-p.gone:
			return
		}
		select {
		case <-p.read:
		case <-p.gone:
			return
		}
		b, offset = b[n:], offset+int64(n)
	}
}

// Piped reports whether the command ends with the stream that started it.
func (e *Exec) Piped() bool { return e.output.pipe != nil }

// Abandon ends a piped command: its stream is gone.
func (e *Exec) Abandon() {
	e.stop(Outcome{Reason: Cancelled, Message: "the stream that started the command has ended"})
	e.output.pipe.end()
}

// followPipe is Follow of a piped command.
func (e *Exec) followPipe(ctx context.Context, send func(Piece) error) (Outcome, error) {
	p := e.output.pipe
	for {
		more := e.output.more()
		if end := e.Outcome(); end != nil { // published once all output is read
			return *end, nil
		}
		select {
		case x := <-p.pieces:
			if err := send(x); err != nil {
				return Outcome{}, err
			}
			p.read <- struct{}{}
		case <-more:
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		}
	}
}
