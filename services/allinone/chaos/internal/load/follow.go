package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// saw records that a turn has ended.
func (c *client) saw(e *sessionv1.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partial = c.partial || e.GetTurnFinished().GetState() == sessionv1.TurnState_TURN_STATE_PARTIAL
	if !c.ended[e.GetTurn()] {
		c.ended[e.GetTurn()] = true
		c.load.finished.Add(1)
		close(c.news)
		c.news = make(chan struct{})
	}
}

// heard lets people answer what an event of a session, or of one of its subagents, asks.
func (c *client) heard(people context.Context, session string, ev *sessionv1.Event, r *rand.Rand) {
	c.load.seen.note(ev)
	switch b := ev.GetBody().(type) {
	case *sessionv1.Event_SubagentStarted:
		c.mu.Lock()
		c.subagents[b.SubagentStarted.GetCallId()] = b.SubagentStarted.GetSession()
		c.mu.Unlock()
	case *sessionv1.Event_SubagentEvent:
		c.mu.Lock()
		of := c.subagents[b.SubagentEvent.GetCallId()]
		c.mu.Unlock()
		c.heard(people, of, b.SubagentEvent.GetEvent(), r)
	case *sessionv1.Event_ApprovalRequested:
		c.asked(people, session, b.ApprovalRequested, r.Uint64())
	case *sessionv1.Event_QuestionRequested:
		c.inquired(people, session, b.QuestionRequested, r.Uint64())
	}
}

// follow follows the session, over one stream after the other, until it has come to the end of the log, also when the
// context of people, who answer what it sees asked, has ended.
func (c *client) follow(people context.Context, f *record.Follower, r *rand.Rand, tell bool) {
	at := int64(0)
	deadline := time.Time{}
	for {
		select { // nothing happens any more: come back at the end
		case <-c.gone:
			<-c.load.ending.Done()
		default:
		}
		ending := c.load.ending.Err() != nil
		if ending && deadline.IsZero() {
			deadline = time.Now().Add(30 * time.Second)
		}
		c.mu.Lock()
		session, target := c.record.Name, c.target
		c.mu.Unlock()
		if ending && (at >= target || time.Now().After(deadline)) {
			return
		}
		e := c.entry(r)
		s := &record.Stream{Via: e.name(), After: at, Begin: time.Now()}
		f.Streams = append(f.Streams, s)
		most, life := 1+r.IntN(400), time.Duration(200+r.IntN(8000))*time.Millisecond
		if ending {
			most, life = 1<<30, 3*time.Second
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(people), life)
		stop := func() bool { return true }
		if !ending {
			stop = context.AfterFunc(c.load.ending, cancel) //nolint:contextcheck // the followers' own end
		}
		err := e.follow(ctx, session, at, func(ev *sessionv1.Event) bool {
			s.Events = append(s.Events, ev)
			at = max(at, ev.GetSeq())
			if tell && ev.GetTurnFinished() != nil {
				c.saw(ev)
			}
			if tell && ev.GetTurnQueued().GetSchedule() != "" {
				c.sent(ev.GetTurn())
			}
			if tell && (ev.GetSessionCompacted() != nil || ev.GetWarning().GetReason() == "NOT_COMPACTED") {
				c.shortened()
			}
			if tell {
				c.heard(people, session, ev, r)
			}
			if o := ev.GetOperationStarted(); o != nil && tell {
				c.began(people, o.GetCallId(), o.GetOperation(), r.Uint64())
			}
			return len(s.Events) < most && (!ending || at < target)
		})
		stop()
		cancel()
		if err != nil {
			s.Ended = err.Error()
			if !errors.Is(err, errAgain) {
				c.refused(e, err)
			}
			wait(c.load.ending, time.Duration(r.IntN(100))*time.Millisecond) //nolint:contextcheck // the same
		}
	}
}
