package socket

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// statusBase is added to an HTTP status: applications may use the close codes from 4000 on.
const statusBase = 4000

var (
	errLeft   = errors.New("the client has gone")
	errSlow   = errors.New("the client takes nothing within the write timeout")
	errBinary = problem.BodyMalformed("", "a message is binary; send JSON in text messages")
)

// conversing is the stream of a conversation.
type conversing = grpc.BidiStreamingClient[sessionv1.ConverseRequest, sessionv1.ConverseResponse]

// conversation is one socket. Only hold's goroutine writes messages.
type conversation struct {
	*Server
	socket *websocket.Conn
	cancel context.CancelCauseFunc
	read   int // messages
}

// hold passes on what either side says, until one of them ends, and closes the socket.
func (c *conversation) hold(ctx context.Context, session string, after int64) {
	by := stream.By("websocket")
	defer c.metrics.Opened(ctx, by)()
	// A read whose context ends closes the socket, and the client could not be told why.
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	err := c.converse(ctx, live, &parts, session, after)
	if errors.Is(err, errSlow) {
		c.metrics.Dropped(ctx, by)
	}
	c.close(live, err)
	stop()
	c.cancel(err)
	parts.Wait()
}

// converse returns why the conversation is over; nil if the service ended it well.
func (c *conversation) converse(ctx, live context.Context, parts *sync.WaitGroup, session string, after int64) error {
	open := &sessionv1.ConverseOpen{Session: session, AfterSeq: after}
	if session == "" {
		var err error
		if open, err = c.first(ctx, live, after); err != nil {
			return err
		}
	}
	st, err := c.Sessions.Converse(ctx)
	if err == nil {
		err = st.Send(&sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_Open{Open: open}})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	parts.Go(func() { c.cancel(c.listen(live, st)) })
	parts.Go(func() { c.cancel(c.ping(live)) })
	answers := make(chan *sessionv1.ConverseResponse)
	broken := make(chan error, 1)
	parts.Go(func() { broken <- receive(ctx, st, answers) })
	for {
		select {
		case m := <-answers:
			if err := c.say(live, m); err != nil {
				return err
			}
		case err := <-broken:
			if ctx.Err() == nil {
				return err
			}
		case <-rpc.Draining(ctx):
			return problem.Stopping()
		case <-ctx.Done():
			if err := auth.Ended(ctx); err != nil {
				return err
			}
			return context.Cause(ctx)
		}
	}
}

// receive passes on the service's answers until the stream ends, which is nil, or breaks.
func receive(ctx context.Context, st conversing, to chan<- *sessionv1.ConverseResponse) error {
	for {
		m, err := st.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		select {
		case to <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// beginning is the first message of a socket whose path names no session.
type beginning struct {
	// Open joins a session, as ConverseOpen; Create makes one first, as CreateSessionRequest.
	Open, Create json.RawMessage
}

// first reads the first message, within the time of a body, and makes the session that it asks for.
func (c *conversation) first(ctx, live context.Context, after int64) (*sessionv1.ConverseOpen, error) {
	within, cancel := context.WithTimeout(live, c.BodyTimeout)
	defer cancel()
	data, err := c.next(within)
	if err != nil {
		return nil, err
	}
	var b beginning
	if err := wire.DecodeJSON(data, &b); err != nil {
		return nil, err
	}
	open := &sessionv1.ConverseOpen{AfterSeq: after}
	switch {
	case (b.Open == nil) == (b.Create == nil):
		return nil, problem.BodyMalformed("open", `the first message must be {"open": {"session": "sessions/…"}} or {"create": {"session": {…}}}`)
	case b.Open != nil:
		return open, codec.UnmarshalInput(c.read, b.Open, open)
	}
	create := &sessionv1.CreateSessionRequest{}
	if err := codec.UnmarshalInput(c.read, b.Create, create); err != nil {
		return nil, err
	}
	made, err := c.Sessions.CreateSession(ctx, create)
	if err != nil {
		return nil, err
	}
	open.Session = made.GetSession().GetName()
	return open, c.say(live, made)
}

// next reads a message. A context that ends closes the socket.
func (c *conversation) next(ctx context.Context) ([]byte, error) {
	kind, data, err := c.socket.Read(ctx)
	c.read++
	switch {
	case err != nil:
		return nil, errLeft // or its message is too long: the library has closed the socket with 1009
	case kind != websocket.MessageText:
		return nil, errBinary
	}
	return data, nil
}

// listen passes on the client's inputs until one is wrong or the client leaves. The service's errors come with its
// answers.
func (c *conversation) listen(ctx context.Context, st conversing) error {
	for {
		data, err := c.next(ctx)
		if err != nil {
			return err
		}
		input := &sessionv1.ConverseRequest{}
		if err := codec.UnmarshalInput(c.read, data, input); err != nil {
			return err
		}
		if err := st.Send(input); err != nil {
			<-ctx.Done() // the answers tell what became of the stream
			return err
		}
	}
}

// ping looks after a quiet client, and keeps proxies from closing the connection.
func (c *conversation) ping(ctx context.Context) error {
	beat := time.NewTicker(c.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
		case <-ctx.Done():
			return nil
		}
		within, cancel := context.WithTimeout(ctx, c.WriteTimeout)
		err := c.socket.Ping(within)
		cancel()
		if err != nil {
			return errLeft
		}
	}
}

// say sends a message.
func (c *conversation) say(ctx context.Context, m proto.Message) error {
	data, err := jsontext.AppendMessage(nil, m)
	if err != nil {
		return err
	}
	c.metrics.Sent(ctx, stream.By("websocket"))
	return c.write(ctx, data)
}

// write sends a text message. The reader may take the time of one write.
func (c *conversation) write(ctx context.Context, data []byte) error {
	within, cancel := context.WithTimeoutCause(ctx, c.WriteTimeout, errSlow)
	defer cancel()
	if err := c.socket.Write(within, websocket.MessageText, data); err != nil {
		if errors.Is(context.Cause(within), errSlow) {
			c.Log.WarnContext(ctx, "socket cut, its reader is too slow", "write_timeout", c.WriteTimeout)
			return errSlow
		}
		return errLeft
	}
	return nil
}

// close says why the conversation is over, and closes the socket. The close code is 1000 after a good end, 1012 when
// the server stops, 1003 after a binary message, otherwise 4000 and the HTTP status of the error.
func (c *conversation) close(ctx context.Context, err error) {
	if errors.Is(err, errLeft) || errors.Is(err, errSlow) || errors.Is(err, context.Canceled) {
		return // no client is there to tell
	}
	code, reason := websocket.StatusNormalClosure, ""
	if err != nil {
		st := problem.Status(err)
		said := append(append([]byte(`{"error":`), problem.JSON(st)...), '}')
		if c.write(ctx, said) != nil {
			return
		}
		code, reason = websocket.StatusCode(statusBase+problem.HTTPStatus(err)), apierr.Reason(st.Err())
		switch {
		case errors.Is(err, errBinary):
			code = websocket.StatusUnsupportedData
		case reason == problem.ReasonStopping:
			code = websocket.StatusServiceRestart
		}
	}
	_ = c.socket.Close(code, reason) // an error means that the client has gone
}
