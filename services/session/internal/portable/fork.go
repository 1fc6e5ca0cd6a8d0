package portable

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Fork makes a session with the conversation of another one.
//
// It makes the files first and the session last, in one write: a fork that
// fails leaves at most a workspace without a session. A fork that is repeated
// with its request id finds that workspace again, because its id follows from
// the request id.
func (s *Sessions) Fork(ctx context.Context, r *sessionv1.ForkSessionRequest) (*sessionv1.Session, error) {
	from, to := request.Key(ctx, r.Name), request.Key(ctx, r.SessionId)
	if to.Session == "" {
		to.Session = derivedID(store.Key{Tenant: from.Tenant, Session: from.Session + request.OwnScope(ctx)}, r.RequestId)
	}
	about := refusal.Subject{Session: "sessions/" + to.Session, RequestID: r.RequestId}
	n := store.NewSession{
		Key: to, User: request.User(ctx), Caps: s.Use.Sessions(to.Tenant, request.User(ctx)),
		Request: request.Lasting("ForkSession", r.Name+request.OwnScope(ctx), r),
		Event:   &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{ForkedFrom: r.Name}}},
	}
	_, err := s.Store.GetSession(ctx, to)
	switch {
	case err == nil:
		// The same fork was made before, or the id is taken: the store decides.
		// Later changes of the source do not matter then.
		_, err = s.Store.CreateSession(ctx, n)
	case errors.Is(err, store.ErrNotFound):
		err = s.fork(ctx, from, r, n)
	}
	if err != nil {
		return nil, refusal.Store(err, about)
	}
	session, err := s.Store.GetSession(ctx, to)
	return session, refusal.Store(err, about)
}

// fork copies the files and writes the new session.
func (s *Sessions) fork(ctx context.Context, from store.Key, r *sessionv1.ForkSessionRequest, n store.NewSession) error {
	source, err := s.Store.GetSession(ctx, from)
	if err != nil {
		return refusal.Store(err, refusal.Subject{Session: r.Name})
	}
	if source.ParentCall != nil {
		return refusal.SubagentSession(source.Name)
	}
	if source.Rewinding {
		return refusal.SessionRewinding(source.Name)
	}
	head, err := s.forkPoint(ctx, from, source, r.Turn)
	if err != nil {
		return err
	}
	if n.Messages, err = s.copyMessages(ctx, from, n.Key, head); err != nil {
		return refusal.Store(err, refusal.Subject{Session: r.Name})
	}
	n.Agent, n.AgentRevision, n.AgentVersion, n.Title, n.Labels, n.Budget = source.Agent, source.AgentRevision, source.AgentVersion, source.Title, source.Labels, source.Budget
	n.Mounts, n.MetadataJSON, n.TurnOptions = source.Mounts, source.MetadataJson, source.TurnOptions
	n.Environment, n.EnvironmentVersion, n.Permissions = source.Environment, source.EnvironmentVersion, source.Permissions
	if n.MCPServers, err = s.ownServers(ctx, from, n.User); err != nil {
		return refusal.Store(err, refusal.Subject{Session: r.Name})
	}
	n.Event.GetSessionCreated().Agent = source.Agent
	if r.Title != "" {
		n.Title = r.Title
	}
	to, made := "sessions/"+n.Session, false
	if !r.WithoutFiles {
		if made, err = s.copyWorkspace(ctx, r.Name, to); err != nil {
			return err
		}
	}
	answer, err := s.Store.CreateSession(ctx, n)
	if made {
		s.dropUnused(ctx, n.Key, answer, err)
	}
	return err
}

// ownServers returns the MCP servers that a session brings, if it is the user's. Another user's would get the variables
// of the fork's user, and work with the secrets of the other.
func (s *Sessions) ownServers(ctx context.Context, k store.Key, user string) ([]*commonv1.McpServer, error) {
	owner, err := s.Store.SessionOwner(ctx, k)
	if err != nil || owner != user {
		return nil, err
	}
	return s.Store.SessionMCPServers(ctx, k)
}

// dropUnused deletes files that were made for a session that does not exist: it
// could not be made, or it was made before by the same request and deleted.
func (s *Sessions) dropUnused(ctx context.Context, k store.Key, answer store.Answer, err error) {
	if err == nil && answer.Replayed {
		if _, err = s.Store.GetSession(ctx, k); !errors.Is(err, store.ErrNotFound) {
			return
		}
	}
	if err != nil && !mayBeMade(err) {
		s.dropWorkspace(ctx, "sessions/"+k.Session)
	}
}

// derivedID returns the id of a fork whose caller chose none: the same for the
// same request, in the form of all ids.
func derivedID(from store.Key, requestID string) string {
	sum := sha256.Sum256([]byte(from.Tenant + "\x00" + from.Session + "\x00" + requestID))
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// mayBeMade reports whether a session may exist although creating it returned an
// error.
func mayBeMade(err error) bool {
	return errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrUnavailable) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// forkPoint returns the id of the last message that a fork copies.
func (s *Sessions) forkPoint(ctx context.Context, from store.Key, source *sessionv1.Session, turn string) (string, error) {
	if turn == "" {
		if source.ActiveTurn != "" {
			return "", refusal.SessionActive(source.Name)
		}
		return request.LastSegment(source.Head), nil
	}
	session, turnID, _ := strings.Cut(turn, "/turns/")
	if session != source.Name {
		return "", refusal.Input("turn", fmt.Sprintf("%s is not a turn of %s.", turn, source.Name))
	}
	t, err := s.Store.GetTurn(ctx, from, turnID)
	if err != nil {
		return "", refusal.Store(err, refusal.Subject{Session: source.Name, Turn: turn})
	}
	switch {
	case t.EndTime == nil:
		return "", refusal.TurnNotEnded(turn, "has not ended. Wait until it has, or interrupt it.")
	case t.Head == "":
		return "", refusal.TurnNotEnded(turn, "ended before it began, so nothing comes after it. Fork from the turn before it.")
	}
	return request.LastSegment(t.Head), nil
}

// pageMessages is how many messages one read returns.
const pageMessages = 50

// copyMessages reads the path to head, renamed into the new session. The messages
// belong to no turn there. Call ids stay the same: they only tie results to uses,
// and no call is made with an old one.
func (s *Sessions) copyMessages(ctx context.Context, from, to store.Key, head string) ([]*sessionv1.Message, error) {
	if head == "" {
		return nil, nil
	}
	var all []*sessionv1.Message
	renamed := map[string]string{}
	for after := ""; ; {
		some, err := s.Store.ListMessages(ctx, from, head, after, pageMessages)
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			after = request.LastSegment(m.Name)
			name := "sessions/" + to.Session + "/messages/" + id.New()
			renamed[m.Name] = name
			c := proto.CloneOf(m)
			c.Name, c.Parent, c.Turn = name, renamed[m.Parent], ""
			if c.Compaction != nil {
				c.Compaction.KeptFrom, c.Compaction.ResultsUntil = renamed[c.Compaction.KeptFrom], renamed[c.Compaction.ResultsUntil]
			}
			all = append(all, c)
		}
		if len(some) < pageMessages {
			return all, nil
		}
	}
}

// copyWorkspace copies the files of one session to another, which has none yet,
// and reports whether it made them now. A session without a workspace has
// nothing to copy.
func (s *Sessions) copyWorkspace(ctx context.Context, from, to string) (made bool, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends the streams in every case
	defer cancel()
	files, err := s.Workspaces.ExportWorkspace(ctx, from)
	switch {
	case errors.Is(err, remote.ErrNoWorkspace):
		return false, nil
	case err != nil:
		return false, apierr.Forward(err)
	}
	if err := s.hold(ctx, to); err != nil {
		return false, err
	}
	call := &commonv1.CallRef{Session: to, Epoch: 1, CallId: "fork." + strings.TrimPrefix(to, "sessions/")}
	if err := s.Workspaces.Nodes.Place(ctx, s.Store, call); err != nil {
		return false, err
	}
	made, err = s.Workspaces.Sandbox.ImportWorkspace(ctx, call, func(w io.Writer) error {
		_, err := io.Copy(w, files)
		return err
	})
	if err != nil {
		return false, apierr.Forward(err)
	}
	return made, s.Workspaces.Nodes.Made(ctx, s.Store, call)
}

// hold keeps the id of a session whose files come before it: otherwise another user could make a session of this
// id, and would see the files.
func (s *Sessions) hold(ctx context.Context, session string) error {
	k := request.Key(ctx, session)
	if err := s.Store.HoldID(ctx, k, request.User(ctx)); err != nil {
		return err
	}
	switch _, err := s.Store.SessionOwner(ctx, k); {
	case err == nil:
		return store.ErrExists
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	return nil
}

// dropTimeout bounds the deletion of a workspace without a session.
const dropTimeout = 10 * time.Second

// dropWorkspace deletes the files of a session that could not be made, even if
// its caller has left.
func (s *Sessions) dropWorkspace(ctx context.Context, session string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if err := s.Workspaces.DeleteWorkspace(ctx, session); err != nil {
		s.Log.WarnContext(ctx, "cannot delete the files of a session that was not created",
			"session", session, "code", apierr.Code(err), "error", err)
	}
}
