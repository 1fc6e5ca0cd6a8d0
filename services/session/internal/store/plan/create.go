package plan

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Created has the rows of a new session.
type Created struct {
	Session  *Session
	Event    Event
	Messages []Message
	MCP      *SessionMCP // nil: none
	Jobs     []store.Job
}

// ForCreate returns the rows of a new session at the time now.
func ForCreate(s store.NewSession, now time.Time) (*Created, error) {
	if s.Event == nil {
		return nil, errors.New("a new session needs its first event")
	}
	body, err := proto.Marshal(&sessionv1.Session{
		Title: s.Title, Labels: s.Labels, Budget: s.Budget, Mounts: s.Mounts, AgentVersion: s.AgentVersion, MetadataJson: s.MetadataJSON, TurnOptions: s.TurnOptions, Environment: s.Environment, EnvironmentVersion: s.EnvironmentVersion, ForkedFrom: s.Event.GetSessionCreated().GetForkedFrom(),
		McpServers: mcp.Show(s.MCPServers), Skills: s.Skills, Permissions: s.Permissions,
		ParentCall: s.Child.ParentCall(),
	})
	if err != nil {
		return nil, fmt.Errorf("marshal session: %w", err)
	}
	call := s.Child.ParentCall()
	out := &Created{Session: &Session{
		Family: Family{Parent: SessionID(call.GetSession()), Root: SessionID(call.GetRoot()), Depth: call.GetDepth()},
		Key:    s.Key, User: s.User, Agent: s.Agent, AgentRevision: s.AgentRevision, Body: body, Labels: s.Labels, CallerKey: s.CallerKey,
		CreateTime: now, UpdateTime: now, LastSeq: 1, NextCommand: 1, NextTurn: 1,
	}}
	if s.Child != nil {
		out.Jobs = []store.Job{jobRow(s.Key, s.Child.Job, now)}
	}
	event := proto.CloneOf(s.Event)
	event.FirstSeq, event.Seq = 1, 1
	stamp(&event.Time, now)
	if out.Event, err = eventRow(s.Key, event); err != nil {
		return nil, err
	}
	if out.MCP, err = sessionMCP(s.Key, s.MCPServers); err != nil {
		return nil, err
	}
	for _, m := range s.Messages {
		m = proto.CloneOf(m)
		stamp(&m.CreateTime, now)
		row, err := messageRow(s.Key, m)
		if err != nil {
			return nil, err
		}
		if row.Parent != out.Session.Head {
			return nil, fmt.Errorf("message %s follows %q; the messages of a new session are one path", row.ID, row.Parent)
		}
		row.Depth = int64(len(out.Messages)) + 1
		out.Messages, out.Session.Head = append(out.Messages, row), row.ID
	}
	return out, nil
}

// stamp sets a time that is not set.
func stamp(t **timestamppb.Timestamp, now time.Time) {
	if *t == nil {
		*t = timestamppb.New(now)
	}
}

// Event is an event's row.
type Event struct {
	store.Key
	FirstSeq, Seq int64
	Turn          string
	Body          []byte
}

func eventRow(k store.Key, e *sessionv1.Event) (Event, error) {
	turn, err := TurnID(k.Session, e.GetTurn())
	if err != nil {
		return Event{}, fmt.Errorf("event %d: %w", e.GetSeq(), err)
	}
	body, err := proto.Marshal(e)
	if err != nil {
		return Event{}, fmt.Errorf("marshal event %d: %w", e.GetSeq(), err)
	}
	return Event{Key: k, FirstSeq: e.GetFirstSeq(), Seq: e.GetSeq(), Turn: turn, Body: body}, nil
}

// Message is a message's row.
type Message struct {
	store.Key
	ID, Parent string
	Depth      int64 // 1 at the root
	Body       []byte
}

func messageRow(k store.Key, m *sessionv1.Message) (Message, error) {
	id, err := MessageID(k.Session, m.GetName())
	if err != nil {
		return Message{}, err
	}
	if id == "" {
		return Message{}, errors.New("a message has no name")
	}
	parent, err := MessageID(k.Session, m.GetParent())
	if err != nil {
		return Message{}, fmt.Errorf("parent of message %s: %w", id, err)
	}
	body, err := proto.Marshal(m)
	if err != nil {
		return Message{}, fmt.Errorf("marshal message %s: %w", id, err)
	}
	return Message{Key: k, ID: id, Parent: parent, Body: body}, nil
}

// Turn is a turn's row.
type Turn struct {
	store.Key
	ID        string
	Number    int64 // in the order of acceptance; unknown in a commit
	State     sessionv1.TurnState
	Body, Run []byte
}

func turnRow(k store.Key, t *store.TurnRow) (Turn, error) {
	if t.ID == "" || t.Turn.GetName() != TurnName(k.Session, t.ID) {
		return Turn{}, fmt.Errorf("turn %q of session %s has the name %q", t.ID, k.Session, t.Turn.GetName())
	}
	body, err := proto.Marshal(t.Turn)
	if err != nil {
		return Turn{}, fmt.Errorf("marshal turn %s: %w", t.ID, err)
	}
	return Turn{Key: k, ID: t.ID, State: t.Turn.GetState(), Body: body, Run: t.Run}, nil
}
