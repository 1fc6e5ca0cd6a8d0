package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Place is where a conversation of a wire happens: a session, under the client's own id of the conversation.
type Place struct {
	// Wire is the protocol, such as "ai-sdk": ids of two protocols are different.
	Wire string
	// ID is the client's: any text. "sessions/{session}" names one of the caller's sessions itself.
	ID string
	// Agent is the agent of a session that is made; "" is the server's default. A session that exists must have it.
	Agent string
	// Title is that of a session that is made.
	Title string
}

// ReasonOtherAgent is the reason of a request for a conversation with another agent.
const ReasonOtherAgent = "OTHER_AGENT"

var (
	sessionName = regexp.MustCompile(`^sessions/[a-z0-9][a-z0-9-]{0,62}$`)
	plainKey    = regexp.MustCompile(`^[!-~]{1,96}$`)
	agentName   = regexp.MustCompile(`^(agents/)?[a-z][a-z0-9-]{0,62}$`)
)

// hashed begins the key of an id that cannot be a key itself.
const hashed = "sha256:"

// key returns the key of the session.
func (p Place) key() string {
	if !plainKey.MatchString(p.ID) || strings.HasPrefix(p.ID, hashed) {
		sum := sha256.Sum256([]byte(p.ID))
		return p.Wire + "/" + hashed + hex.EncodeToString(sum[:])
	}
	return p.Wire + "/" + p.ID
}

// Find returns the session of a place. One that does not exist, or that the caller may not see, is NOT_FOUND.
func (s *Server) Find(ctx context.Context, p Place) (*sessionv1.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	found, err := s.find(ctx, p)
	if err == nil && found == nil {
		err = apierr.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND,
			fmt.Sprintf("there is no conversation %q; the first message begins one", problem.Excerpt(p.ID)))
	}
	return found, err
}

// FindOrMake returns the session of a place, which is made if there is none.
func (s *Server) FindOrMake(ctx context.Context, p Place) (*sessionv1.Session, error) {
	if p.Agent != "" && !agentName.MatchString(p.Agent) {
		return nil, problem.BadParameter("agent", "is no name of an agent: it has small letters, digits and hyphens, such as coder")
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	for range 3 {
		found, err := s.find(ctx, p)
		if err != nil {
			return nil, err
		}
		if found != nil {
			return found, p.check(found)
		}
		made, err := s.Sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{
			Session: &sessionv1.Session{Agent: p.Agent, Key: p.key(), Title: p.Title},
		})
		if apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_KEY_TAKEN) {
			continue // another request has made it
		}
		return made.GetSession(), err
	}
	return nil, problem.ServiceTimeout(s.Timeout)
}

// find returns the session of a place; nil if there is none under the client's id.
func (s *Server) find(ctx context.Context, p Place) (*sessionv1.Session, error) {
	if sessionName.MatchString(p.ID) {
		got, err := s.Sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: p.ID})
		return got.GetSession(), err
	}
	// A key is of one user: without the user an operator would find another one's conversation.
	list, err := s.Sessions.ListSessions(ctx, &sessionv1.ListSessionsRequest{Key: p.key(), User: "users/me", PageSize: 1})
	if err != nil || len(list.GetSessions()) == 0 {
		return nil, err
	}
	return list.GetSessions()[0], nil
}

// check refuses a session of another agent than the request names.
func (p Place) check(found *sessionv1.Session) error {
	want := strings.TrimPrefix(p.Agent, "agents/")
	has := strings.TrimPrefix(found.GetAgent(), "agents/")
	if want == "" || want == has {
		return nil
	}
	return problem.WithStatus(http.StatusConflict, apierr.New(codes.FailedPrecondition, problem.Domain, ReasonOtherAgent,
		fmt.Sprintf("the conversation %q is with the agent %s, not %s; begin another conversation for it", problem.Excerpt(p.ID), has, want),
		apierr.Field("agent", "is not the one of the conversation")))
}
