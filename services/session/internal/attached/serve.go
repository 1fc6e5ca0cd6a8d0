package attached

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
)

// Stream is the stream of a process.
type Stream = grpc.BidiStreamingServer[sessionv1.AttachRequest, sessionv1.AttachResponse]

// openWithin bounds the wait for the first message.
const openWithin = 10 * time.Second

func alive() *sessionv1.AttachResponse {
	return &sessionv1.AttachResponse{Kind: &sessionv1.AttachResponse_Alive{Alive: &sessionv1.AttachAlive{}}}
}

func drain() *sessionv1.AttachResponse {
	return &sessionv1.AttachResponse{Kind: &sessionv1.AttachResponse_Drain{Drain: &sessionv1.AttachDrain{}}}
}

// Serve attaches a process of a tenant until its stream ends. One goroutine reads, one writes, and this one waits: a
// process that reads nothing would hold it in a write.
func (h *Hub) Serve(ctx context.Context, tenant string, stream Stream) error {
	p := &process{out: make(chan *sessionv1.AttachResponse, queued), over: make(chan struct{}), steps: map[int64]*asked{}}
	defer p.lose(errGone)
	opened := make(chan struct{})
	// Recv ends with the stream, which ends when this function returns: Close waits for the goroutine.
	h.streams.Go(func() { p.lose(h.read(p, tenant, stream, opened)) })
	wait := time.NewTimer(openWithin)
	defer wait.Stop()
	select {
	case <-opened:
	case <-p.over:
		return ended(p.reason())
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return refusal.RuntimeMessage("open", fmt.Sprintf("The first message has not come within %v. It has to be open, which names the runtime.", openWithin))
	}
	if err := h.join(p); err != nil {
		return err
	}
	defer h.part(p)
	h.log.InfoContext(ctx, "a runtime is attached", "tenant", tenant, "runtime", p.name.runtime, "label", p.label, "turns", p.places)
	// Like Recv, Send ends with the stream.
	h.streams.Go(func() { p.lose(h.write(p, stream)) })
	var err error
	select {
	case <-p.over:
		err = ended(p.reason())
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.log.InfoContext(ctx, "a runtime is not attached any more", "tenant", tenant, "runtime", p.name.runtime, "label", p.label, "error", err)
	return err
}

// ended is the error of a stream that ended so; a process that stops sending has left.
func ended(why error) error {
	if errors.Is(why, io.EOF) {
		return nil
	}
	return why
}

// write sends until the process is lost.
func (h *Hub) write(p *process, stream Stream) error {
	err := stream.Send(&sessionv1.AttachResponse{Kind: &sessionv1.AttachResponse_Opened{Opened: &sessionv1.AttachOpened{
		AliveInterval: durationpb.New(h.config.Alive), Patience: durationpb.New(h.config.Patience),
	}}})
	tick := time.NewTicker(h.config.Alive)
	defer tick.Stop()
	for err == nil {
		select {
		case r := <-p.out:
			err = stream.Send(r)
		case <-tick.C:
			err = stream.Send(alive())
		case <-p.over:
			return errGone
		}
	}
	return err
}

// read takes the process's messages until the stream ends, and returns why it did.
func (h *Hub) read(p *process, tenant string, stream Stream, opened chan<- struct{}) error {
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	open := r.GetOpen()
	if open == nil {
		return refusal.RuntimeMessage("open", "The first message has to be open, which names the runtime.")
	}
	p.name, p.places, p.label = name{tenant, open.Runtime}, int(open.MaxTurns), open.Label
	close(opened)
	silence := 3 * h.config.Alive
	timer := time.AfterFunc(silence, func() {
		p.lose(refusal.RuntimeSilent(fmt.Sprintf("The process has sent nothing for %v. Attach again, and send alive each %v.", silence, h.config.Alive)))
	})
	defer timer.Stop()
	for {
		r, err := stream.Recv()
		timer.Stop()
		if err != nil {
			return err
		}
		if err := h.handle(p, r); err != nil {
			return err
		}
		timer.Reset(silence) // the time in which the session takes a message is not the process's
	}
}

// handle takes a message after the first.
func (h *Hub) handle(p *process, r *sessionv1.AttachRequest) error {
	switch k := r.GetKind().(type) {
	case *sessionv1.AttachRequest_Alive:
		return nil
	case *sessionv1.AttachRequest_Drain:
		h.mu.Lock()
		defer h.mu.Unlock()
		p.draining = true
		h.change()
		return nil
	case *sessionv1.AttachRequest_Ask:
		return p.take(k.Ask.Step, true, r)
	case *sessionv1.AttachRequest_Delta:
		return p.take(k.Delta.Step, false, r)
	case *sessionv1.AttachRequest_Message:
		return p.take(k.Message.Step, true, r)
	case *sessionv1.AttachRequest_End:
		return p.take(k.End.Step, true, r)
	default:
		return refusal.RuntimeMessage("open", "The first message is open, and only the first. Open another stream for another runtime.")
	}
}
