package box

import (
	"context"
	"time"
)

// Write writes to the command's standard input, and closes it afterwards if end is set. It waits until the
// command reads or the context ends. For an ended command it does nothing.
func (e *Exec) Write(ctx context.Context, data []byte, end bool) error {
	select {
	case <-e.input:
		defer func() { e.input <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p := e.live()
	if p == nil {
		return nil
	}
	in := p.Stdin()
	if in == nil || !e.takesInput() {
		return ErrNoStdin
	}
	if d, ok := in.(interface{ SetWriteDeadline(time.Time) error }); ok {
		set := make(chan struct{})
		stop := context.AfterFunc(ctx, func() { _ = d.SetWriteDeadline(time.Unix(1, 0)); close(set) })
		defer func() {
			if !stop() {
				<-set // else the late deadline would fail the next write
				_ = d.SetWriteDeadline(time.Time{})
			}
		}()
	}
	var err error
	if len(data) > 0 {
		_, err = in.Write(data)
	}
	if end && (err == nil || ctx.Err() == nil) {
		err = in.Close() // on a terminal this writes an end of file
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	// Any other error means that the command no longer reads, which is no fault.
	return nil
}

func (e *Exec) takesInput() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stdin
}

// Signal sends a signal to the command's process group. For an ended command it does nothing.
func (e *Exec) Signal(number int) error {
	if p := e.live(); p != nil {
		return p.Signal(number)
	}
	return nil
}

// Resize sets the size of the command's terminal. For an ended command it does nothing.
func (e *Exec) Resize(size TerminalSize) error {
	if p := e.live(); p != nil {
		return p.Resize(size)
	}
	return nil
}

func (e *Exec) live() Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.process
}
