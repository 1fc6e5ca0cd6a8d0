package server

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
)

const (
	// pageEvents and pageBytes bound one read of the store.
	pageEvents = 500
	pageBytes  = 1 << 20
)

// events lists and follows the logs of sessions.
type events struct{ *Config }

// ListEvents reads a page of a session's log.
func (s *events) ListEvents(ctx context.Context, r *sessionv1.ListEventsRequest) (*sessionv1.ListEventsResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := fmt.Sprintf("ListEvents\x00%s\x00%s\x00%d", k.Tenant, k.Session, r.AfterSeq)
	after := r.AfterSeq
	if err := s.list(ctx, k, r.Parent, r.PageToken, scope, &after); err != nil {
		return nil, err
	}
	size := page.Size(r.PageSize, 200, 1000)
	events, err := s.Store.ListEvents(ctx, k, after, size+1, page.MaxBytes)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	resp := &sessionv1.ListEventsResponse{Events: events}
	if len(events) > size {
		resp.Events = events[:size]
	}
	if n := len(resp.Events); n > 0 {
		more := n < len(events)
		if !more {
			// The page may have ended at its limit in bytes.
			rest, err := s.Store.ListEvents(ctx, k, resp.Events[n-1].Seq, 1, 0)
			if err != nil {
				return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
			}
			more = len(rest) > 0
		}
		if more {
			resp.NextPageToken = page.Encode(scope, resp.Events[n-1].Seq)
		}
	}
	return resp, nil
}

// StreamEvents replays and follows a session's log.
func (s *events) StreamEvents(r *sessionv1.StreamEventsRequest, stream grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]) error {
	ctx := stream.Context()
	k := request.Key(ctx, r.Parent)
	if err := s.checkAfter(ctx, k, r.Parent, r.AfterSeq); err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	return s.follow(ctx, following{
		key: k, after: r.AfterSeq, idle: s.IdleProgress,
		event: func(e *sessionv1.Event) error {
			return stream.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: e}})
		},
		progress: func(p *sessionv1.Progress) error {
			return stream.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Progress{Progress: p}})
		},
	})
}

// checkAfter refuses a number beyond the end of the log.
func (s *events) checkAfter(ctx context.Context, k store.Key, session string, after int64) error {
	found, err := s.Store.GetSession(ctx, k)
	if err != nil {
		return refusal.Store(err, refusal.Subject{Session: session})
	}
	return submit.WithinLog(found, after)
}

// following is one stream of a session's events.
type following struct {
	key      store.Key
	after    int64
	turn     string // send only this turn's events, and only until it has ended; empty: all
	into     string // the turn that turn was steered into, if it was: its events too
	idle     time.Duration
	event    func(*sessionv1.Event) error
	progress func(*sessionv1.Progress) error

	ended bool
	sent  bool // an event was sent since the flag was last cleared
}

// follow sends the stored events after f.after, then the new ones, until ctx or
// the turn ends. Events come from memory if there is no gap, otherwise from the
// store.
func (s *events) follow(ctx context.Context, f following) error {
	live := s.Hub.Follow(f.key)
	defer live.Close()
	quiet := time.NewTicker(f.idle)
	defer quiet.Stop()
	if err := s.catchUp(ctx, &f); err != nil || f.ended {
		return err
	}
	if err := f.progress(&sessionv1.Progress{Seq: f.after}); err != nil {
		return err
	}
	for !f.ended {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-quiet.C:
			if err := s.stillQuiet(ctx, &f); err != nil {
				return err
			}
		case <-live.C:
			if err := s.deliver(ctx, &f, live); err != nil {
				return err
			}
			if f.sent {
				f.sent = false
				quiet.Reset(f.idle)
			}
		}
	}
	return nil
}

// stillQuiet reports the stream's position after a look at the store, since a
// wake may have been lost.
func (s *events) stillQuiet(ctx context.Context, f *following) error {
	f.sent = false
	if err := s.catchUp(ctx, f); err != nil || f.sent || f.ended {
		return err
	}
	return f.progress(&sessionv1.Progress{Seq: f.after})
}

// deliver sends what the hub has.
func (s *events) deliver(ctx context.Context, f *following, live *hub.Follower) error {
	batches, wake, changed := live.Take()
	if err := s.deliverEvents(ctx, f, batches, wake); err != nil || f.ended || !changed {
		return err
	}
	return f.progress(&sessionv1.Progress{Seq: f.after, SessionChanged: true})
}

// deliverEvents sends events. It reads the store before a gap and after a wake.
func (s *events) deliverEvents(ctx context.Context, f *following, batches [][]*sessionv1.Event, wake bool) error {
	for _, b := range batches {
		if b[0].FirstSeq > f.after+1 {
			if err := s.catchUp(ctx, f); err != nil || f.ended {
				return err
			}
			if b[0].FirstSeq > f.after+1 { // the session was deleted meanwhile
				wake = true
				break
			}
		}
		if err := f.send(b); err != nil || f.ended {
			return err
		}
	}
	if !wake {
		return nil
	}
	before := f.after
	if err := s.catchUp(ctx, f); err != nil || f.ended || f.after > before {
		return err
	}
	// No event was found: check that the session still exists.
	_, err := s.Store.GetSession(ctx, f.key)
	return refusal.Store(err, refusal.Subject{Session: "sessions/" + f.key.Session})
}

// catchUp sends what the store has after f.after.
func (s *events) catchUp(ctx context.Context, f *following) error {
	over := false
	if f.turn != "" {
		_, turnID := splitTurn(f.turn)
		t, err := s.Store.GetTurn(ctx, f.key, turnID)
		if err != nil {
			return refusal.Store(err, refusal.Subject{Session: "sessions/" + f.key.Session, Turn: f.turn})
		}
		over = t.EndTime != nil
	}
	for !f.ended {
		events, err := s.Store.ListEvents(ctx, f.key, f.after, pageEvents, pageBytes)
		if err != nil {
			return refusal.Store(err, refusal.Subject{Session: "sessions/" + f.key.Session})
		}
		if len(events) == 0 {
			// The turn had ended before its events were read: there are no more.
			f.ended = over
			return nil
		}
		if err := f.send(events); err != nil {
			return err
		}
	}
	return nil
}

// send sends the events that are new and requested.
func (f *following) send(events []*sessionv1.Event) error {
	for _, e := range events {
		if e.Seq <= f.after {
			continue
		}
		if s := e.GetTurnSteered(); s != nil && e.Turn == f.turn {
			f.into = s.Into
		}
		if f.turn == "" || e.Turn == f.turn || e.Turn == f.into && f.into != "" {
			if err := f.event(e); err != nil {
				return err
			}
			f.sent = true
		}
		f.after = e.Seq
		if f.turn != "" && e.Turn == f.turn && e.GetTurnFinished() != nil {
			f.ended = true
			return nil
		}
	}
	return nil
}

// steeredBefore returns the turn into which t was steered by the sequence number
// after, so that a client that attaches again continues with the same events. It
// returns "" if t was not steered, or only later.
func (s *events) steeredBefore(ctx context.Context, t *sessionv1.Turn, after int64) (string, error) {
	if t.SteeredInto == "" {
		return "", nil
	}
	session, _ := splitTurn(t.Name)
	for at := t.AfterSeq; at < after; {
		events, err := s.Store.ListEvents(ctx, request.Key(ctx, session), at, pageEvents, pageBytes)
		if err != nil {
			return "", refusal.Store(err, refusal.Subject{Session: session})
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if at = e.Seq; at <= after && e.Turn == t.Name && e.GetTurnSteered() != nil {
				return t.SteeredInto, nil
			}
		}
	}
	return "", nil
}

type messageCursor struct {
	Head  string `json:"h"`
	After string `json:"a"`
}

// ListMessages lists a page of the conversation. All pages of a list show the
// same conversation, even if the head moves meanwhile.
func (s *events) ListMessages(ctx context.Context, r *sessionv1.ListMessagesRequest) (*sessionv1.ListMessagesResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := "ListMessages\x00" + k.Tenant + "\x00" + k.Session
	var c messageCursor
	if err := s.list(ctx, k, r.Parent, r.PageToken, scope, &c); err != nil {
		return nil, err
	}
	if c.Head == "" {
		session, err := s.Store.GetSession(ctx, k)
		if err != nil {
			return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
		}
		c.Head = request.LastSegment(session.Head)
	}
	resp := &sessionv1.ListMessagesResponse{}
	if c.Head == "" {
		return resp, nil
	}
	size := page.Size(r.PageSize, 50, 1000)
	messages, more, err := page.Fill(size, func(last *sessionv1.Message, n int) ([]*sessionv1.Message, error) {
		if last != nil {
			c.After = request.LastSegment(last.Name)
		}
		return s.Store.ListMessages(ctx, k, c.Head, c.After, n)
	})
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	resp.Messages = messages
	if more {
		resp.NextPageToken = page.Encode(scope, messageCursor{Head: c.Head, After: request.LastSegment(messages[len(messages)-1].Name)})
	}
	return resp, nil
}
