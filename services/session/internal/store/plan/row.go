package plan

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Session is a session's row.
type Session struct {
	store.Key
	User                 string // an id
	Agent, AgentRevision string
	Body                 []byte // title and labels, as a marshaled Session
	CallerKey            string
	Family
	ArchiveTime *time.Time
	// Labels are set only for a session that is inserted.
	Labels                 map[string]string
	CreateTime, UpdateTime time.Time
	LastSeq                int64
	Head, ActiveTurn       string // ids
	Usage                  Usage
	FinishedTurns          int32
	Lease                  Lease
	// NextCommand and NextTurn are the next numbers in the inbox and in the order
	// of turns.
	NextCommand, NextTurn int64
	Shown
}

// Shown has what is computed for sessions that are shown; for others it is zero.
type Shown struct {
	Rewinding bool // the inbox holds a rewind
	State     int32
}

// Family has the ids of the sessions above a subagent's; it is zero for any other session.
type Family struct {
	Parent, Root string
	Depth        int32
}

// Lease has what a session's row says of its holder.
type Lease struct {
	Epoch  int64
	Held   bool // the lease was taken and not released; it may have expired
	Claims int  // since the session last made progress
}

// Usage has a session's usage as columns.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Thinking, CostNanoUSD int64
}

// Add adds u, which may be nil.
func (s *Usage) Add(u *sessionv1.Usage) {
	s.Input = store.Sum(s.Input, u.GetInputTokens())
	s.Output = store.Sum(s.Output, u.GetOutputTokens())
	s.CacheRead = store.Sum(s.CacheRead, u.GetCacheReadTokens())
	s.CacheWrite = store.Sum(s.CacheWrite, u.GetCacheWriteTokens())
	s.Thinking = store.Sum(s.Thinking, u.GetThinkingTokens())
	s.CostNanoUSD = store.Sum(s.CostNanoUSD, u.GetCostNanoUsd())
}

func (s Usage) proto() *sessionv1.Usage {
	return &sessionv1.Usage{
		InputTokens: s.Input, OutputTokens: s.Output,
		CacheReadTokens: s.CacheRead, CacheWriteTokens: s.CacheWrite,
		ThinkingTokens: s.Thinking, CostNanoUsd: s.CostNanoUSD,
	}
}

// Proto returns the resource of the row.
func (s *Session) Proto() (*sessionv1.Session, error) {
	out := &sessionv1.Session{}
	if err := proto.Unmarshal(s.Body, out); err != nil {
		return nil, fmt.Errorf("read session %s: %w", s.Session, err)
	}
	out.Name = SessionName(s.Session)
	if s.User != "" {
		out.User = UserName(s.User)
	}
	out.Agent = s.Agent
	out.AgentRevision = s.AgentRevision
	out.CreateTime = timestamppb.New(s.CreateTime)
	out.UpdateTime = timestamppb.New(s.UpdateTime)
	out.LastSeq = s.LastSeq
	out.Head = MessageName(s.Session, s.Head)
	out.ActiveTurn = TurnName(s.Session, s.ActiveTurn)
	out.Usage = s.Usage.proto()
	out.FinishedTurns = s.FinishedTurns
	out.Rewinding, out.State = s.Rewinding, sessionv1.SessionState(s.State)
	out.Key = s.CallerKey
	if s.ArchiveTime != nil {
		out.ArchiveTime = timestamppb.New(*s.ArchiveTime)
	}
	return out, nil
}

// SessionName returns the resource name of the session with this id.
func SessionName(session string) string { return "sessions/" + session }

// SessionID returns the id in a session's resource name, or "" without a name.
func SessionID(name string) string { return strings.TrimPrefix(name, "sessions/") }

// TurnName returns the resource name of a turn, or "" without an id.
func TurnName(session, turn string) string { return childName(session, "turns", turn) }

// MessageName returns the resource name of a message, or "" without an id.
func MessageName(session, message string) string { return childName(session, "messages", message) }

func childName(session, collection, id string) string {
	if id == "" {
		return ""
	}
	return "sessions/" + session + "/" + collection + "/" + id
}

// childID returns the id in a resource name of the session's collection, or ""
// for an empty name.
func childID(session, collection, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	id, ok := strings.CutPrefix(name, "sessions/"+session+"/"+collection+"/")
	if !ok || id == "" || strings.Contains(id, "/") {
		return "", fmt.Errorf("%q is not one of the %s of session %s", name, collection, session)
	}
	return id, nil
}

// TurnID returns the id in a turn's resource name.
func TurnID(session, name string) (string, error) { return childID(session, "turns", name) }

// MessageID returns the id in a message's resource name.
func MessageID(session, name string) (string, error) { return childID(session, "messages", name) }

// Micros rounds a time down to the precision of both databases.
func Micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Decode unmarshals the bodies of one query.
func Decode[T any, M interface {
	*T
	proto.Message
}](bodies [][]byte) ([]M, error) {
	out := make([]M, 0, len(bodies))
	for _, b := range bodies {
		m := M(new(T))
		if err := proto.Unmarshal(b, m); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.ProtoReflect().Descriptor().Name(), err)
		}
		out = append(out, m)
	}
	return out, nil
}

// Behind cuts a path, which begins at after or at the root and ends at head,
// behind after. A head or an after that is not on a path is store.ErrNotFound.
func Behind(path []string, head, after string) ([]string, error) {
	switch {
	case head == "" && after == "":
		return nil, nil
	case len(path) == 0:
		return nil, store.ErrNotFound
	case after == "":
		return path, nil
	case path[0] != after:
		return nil, store.ErrNotFound
	}
	return path[1:], nil
}
