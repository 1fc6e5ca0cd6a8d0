package wire

import (
	"context"
	"errors"

	"github.com/fairlead/fairlead/services/gateway/internal/feed"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
)

// sharing is an answer in the feed of its session.
type sharing struct {
	*answer
	ctx    context.Context //nolint:containedctx // it lives as long as the answer
	stream *idle.Stream
	reader *feed.Reader // nil: it has to join
	had    seen
	err    error // why the answer is not complete
}

// share goes on with an answer in the session's feed. Its error is the one of the answer; nil also if the answer goes on
// without its handler.
func (a *answer) share(ctx context.Context) error {
	s := &sharing{answer: a, ctx: ctx}
	if complete, err := s.part(); complete || err != nil {
		return err
	}
	s.stream = a.shared.Keeper.Open(ctx, a.Heartbeat)
	s.stream.Wake(idle.News)
	if s.stream.Hold(s.step, a.out.Detach) {
		return nil
	}
	return s.err
}

// part closes the answer's own stream, and appends the event that it has received last.
func (s *sharing) part() (complete bool, err error) {
	s.from.Close()
	s.had = s.from.had
	if s.from.rest == nil {
		return false, nil
	}
	if complete, err = s.add(s.ctx, s.from.rest); err != nil {
		return false, err
	}
	return complete, s.flush()
}

// step writes what is due. It reports whether the answer is over.
func (s *sharing) step(why idle.Reason) (over bool) {
	over = true // after a panic, too
	defer func() {
		if over && s.reader != nil {
			s.reader.Leave()
		}
	}()
	complete, err := s.write(why)
	if err == nil {
		err = s.flush()
	}
	if err == nil && complete {
		err = s.out.Finish()
	}
	if !complete && err == nil {
		return false
	}
	if s.err = err; s.out.Detached() {
		s.cut(s.ctx, err) // without its last chunk the answer is not complete
	}
	return true
}

// write appends what is due, and flushes batches of it.
func (s *sharing) write(why idle.Reason) (complete bool, err error) {
	switch {
	case why&idle.Ended != 0:
		return s.ended(s.ctx)
	case why&idle.Stopping != 0:
		return false, problem.Stopping()
	}
	for {
		entries, err := s.next()
		switch {
		case errors.Is(err, feed.ErrBehind), err != nil && passes(err):
			if complete, err := s.catchUp(); complete || err != nil {
				return complete, err
			}
			continue
		case err != nil:
			return s.lost(err)
		}
		if len(entries) == 0 {
			break
		}
		if complete, err := s.send(entries); complete || err != nil {
			return complete, err
		}
	}
	if s.reader.Changed() {
		if w, able := s.enc.(Waiting); able {
			s.out.Buf, complete = w.Changed(s.ctx, s.out.Buf)
		}
	}
	if why&idle.Beat != 0 && len(s.out.Buf) == 0 {
		complete = s.quiet(s.ctx)
	}
	return complete, nil
}

// next returns what the feed has, which the answer joins first if it has to.
func (s *sharing) next() (entries []*feed.Entry, err error) {
	if s.reader == nil {
		s.reader, err = s.shared.Feeds.Join(s.ctx, s.from.session, s.had.last, func() { s.stream.Wake(idle.News) })
		if err != nil {
			s.reader = nil
			return nil, err
		}
	}
	entries, _, err = s.reader.Next()
	return entries, err
}

// send writes entries of the feed.
func (s *sharing) send(entries []*feed.Entry) (complete bool, err error) {
	for _, entry := range entries {
		e := s.had.fresh(entry.Event)
		if e == nil {
			continue
		}
		if complete, err = s.add(s.ctx, e); err != nil || complete {
			return complete, err
		}
		if len(s.out.Buf) >= stream.MaxBatch {
			if err := s.flush(); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// catchUp reads the log on a stream of its own until it has caught up.
func (s *sharing) catchUp() (complete bool, err error) {
	if s.reader != nil {
		s.reader.Leave()
		s.reader = nil
	}
	s.from = s.goOn(s.ctx, s.from.session, s.had)
	if err = s.run(s.ctx); errors.Is(err, errCaughtUp) {
		return s.part()
	}
	s.from.Close()
	return err == nil, err
}
