package wires

import (
	"context"
	"fmt"
	"strings"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// raw is a client that gets the events of the log themselves, and comes back after the last one.
type raw struct {
	read func(ctx context.Context, after int64, see func(*sessionv1.Event) (bool, error)) error
	log  fold.Log
}

// Follow implements Follower.
func (r *raw) Follow(ctx context.Context, _ bool) error {
	return r.read(ctx, r.log.Last(), func(e *sessionv1.Event) (bool, error) { return true, r.log.Add(e) })
}

// End implements Follower.
func (r *raw) End(ctx context.Context, last int64) ([]record.Shown, error) {
	if r.log.Last() < last {
		err := r.read(ctx, r.log.Last(), func(e *sessionv1.Event) (bool, error) { return e.GetSeq() < last, r.log.Add(e) })
		if err != nil {
			return nil, err
		}
	}
	var all []record.Shown
	for _, t := range r.log.State().Turns {
		all = append(all, Of(t))
	}
	return all, nil
}

// Of returns what a turn shows.
func Of(t *fold.Turn) record.Shown {
	shown := record.Shown{Turn: last(t.Name)}
	for _, s := range t.Steps {
		text, _ := s.Text()
		shown.Text += text
		for _, c := range s.Calls {
			call := record.ShownCall{ID: c.ID, Tool: c.Tool}
			call.Argue(c.Arguments)
			if c.Finished > 0 {
				call.Result = &c.Result
			}
			shown.Calls = append(shown.Calls, call)
		}
	}
	return shown
}

func (t Target) sse(ctx context.Context, after int64, see func(*sessionv1.Event) (bool, error)) error {
	resp, err := t.get(ctx, fmt.Sprintf("/v1/%s/events?after_seq=%d", t.Session, after), map[string]string{"Accept": "text/event-stream"})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return frames(resp.Body, func(f frame) (bool, error) {
		if f.kind == "stream.error" {
			return false, fmt.Errorf("%w: %s", ErrAgain, f.data)
		}
		e := &sessionv1.Event{}
		if err := protojson.Unmarshal(f.data, e); err != nil {
			return false, fmt.Errorf("an event that cannot be read: %w: %s", err, f.data)
		}
		return see(e)
	})
}

func (t Target) grpc(ctx context.Context, after int64, see func(*sessionv1.Event) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := t.GRPC.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: t.Session, AfterSeq: after})
	for err == nil {
		var resp *sessionv1.StreamEventsResponse
		if resp, err = stream.Recv(); err != nil || resp.GetEvent() == nil {
			continue
		}
		if more, err := see(resp.GetEvent()); err != nil || !more {
			return err
		}
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.Canceled, codes.Unknown: // Unknown: the end of the stream
		return fmt.Errorf("%w: %w", ErrAgain, err)
	default:
		return err
	}
}

func (t Target) socket(ctx context.Context, after int64, see func(*sessionv1.Event) (bool, error)) error {
	conn, resp, err := websocket.Dial(ctx, fmt.Sprintf("ws://%s/v1/%s/ws?afterSeq=%d", t.HTTP, t.Session, after), &websocket.DialOptions{HTTPClient: t.Client}) //nolint:bodyclose // the library closes it
	if err != nil {
		if resp != nil && resp.StatusCode >= 300 {
			return answered(resp.StatusCode, err)
		}
		return fmt.Errorf("%w: %w", ErrAgain, err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(16 << 20)
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			if code := int(websocket.CloseStatus(err)); code >= 4400 {
				return answered(code-4000, err)
			}
			return fmt.Errorf("%w: %w", ErrAgain, err)
		}
		said := &sessionv1.ConverseResponse{}
		if err := protojson.Unmarshal(data, said); err != nil && !strings.HasPrefix(string(data), `{"error"`) {
			return fmt.Errorf("a message that cannot be read: %w: %s", err, data)
		}
		if said.GetEvent() == nil {
			continue
		}
		if more, err := see(said.GetEvent()); err != nil || !more {
			return err
		}
	}
}
