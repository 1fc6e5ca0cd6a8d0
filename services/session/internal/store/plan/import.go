package plan

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Importing makes the rows of an imported session, batch by batch.
type Importing struct {
	Session *Session // its numbers grow with the batches
	now     time.Time
	headed  bool
}

// Imported has the rows of one batch.
type Imported struct {
	Turns    []Turn
	Messages []Message
	Events   []Event
	Jobs     []store.Job
}

// ForImport begins an import at the time now.
func ForImport(i store.Import, now time.Time) (*Importing, error) {
	body, err := proto.Marshal(&sessionv1.Session{Title: i.Title, Labels: i.Labels, Budget: i.Budget, Mounts: i.Mounts, AgentVersion: i.AgentVersion, MetadataJson: i.MetadataJSON, TurnOptions: i.TurnOptions, Environment: i.Environment, EnvironmentVersion: i.EnvironmentVersion, Permissions: i.Permissions})
	if err != nil {
		return nil, fmt.Errorf("marshal session: %w", err)
	}
	s := &Session{
		Key: i.Key, User: i.User, Agent: i.Agent, AgentRevision: i.AgentRevision, Body: body, Labels: i.Labels, CreateTime: now, UpdateTime: now,
		Head: i.Head, FinishedTurns: i.FinishedTurns, NextCommand: 1, NextTurn: 1,
	}
	s.Usage.Add(i.Usage)
	return &Importing{Session: s, now: now, headed: i.Head == ""}, nil
}

// Batch returns the rows of the next batch.
func (p *Importing) Batch(b store.ImportBatch) (*Imported, error) {
	out := &Imported{}
	for _, t := range b.Turns {
		if err := p.turn(out, t); err != nil {
			return nil, err
		}
	}
	for _, m := range b.Messages {
		row, err := messageRow(p.Session.Key, m.Message)
		if err != nil {
			return nil, err
		}
		row.Depth = m.Depth
		p.headed = p.headed || row.ID == p.Session.Head
		out.Messages = append(out.Messages, row)
	}
	for _, e := range b.Events {
		row, err := eventRow(p.Session.Key, e)
		if err != nil {
			return nil, err
		}
		if row.FirstSeq != p.Session.LastSeq+1 || row.Seq < row.FirstSeq {
			return nil, fmt.Errorf("event %d..%d after %d: %w", row.FirstSeq, row.Seq, p.Session.LastSeq, store.ErrNotTiled)
		}
		p.Session.LastSeq = row.Seq
		out.Events = append(out.Events, row)
	}
	return out, nil
}

func (p *Importing) turn(out *Imported, t *sessionv1.Turn) error {
	k := p.Session.Key
	id, err := TurnID(k.Session, t.GetName())
	if err != nil {
		return err
	}
	row, err := turnRow(k, &store.TurnRow{ID: id, Turn: t})
	if err != nil {
		return err
	}
	if !Ended(t.GetState()) {
		return fmt.Errorf("turn %s has not ended", id)
	}
	row.Number = p.Session.NextTurn
	p.Session.NextTurn++
	out.Turns = append(out.Turns, row)
	out.Jobs = append(out.Jobs, jobRow(k, TendJob(k, id), p.now))
	return nil
}

// End checks that the batches make a session, and returns the remaining jobs.
func (p *Importing) End() ([]store.Job, error) {
	switch {
	case p.Session.LastSeq == 0:
		return nil, fmt.Errorf("no events: %w", store.ErrNotTiled)
	case !p.headed:
		return nil, errors.New("the head is not among the messages")
	case p.Session.NextTurn == 1:
		// A job without a turn: it only indexes the messages.
		return []store.Job{jobRow(p.Session.Key, TendJob(p.Session.Key, ""), p.now)}, nil
	}
	return nil, nil
}
