package conversation

import (
	"context"
	"errors"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// maxLabels bounds the labels of a session; the schema bounds those of one request.
const maxLabels = 32

// UpdateSession changes the fields that are set.
func (s *SessionServer) UpdateSession(ctx context.Context, r *sessionv1.UpdateSessionRequest) (*sessionv1.UpdateSessionResponse, error) {
	if err := checkMetadata(r.GetMetadataJson(), "metadata_json"); err != nil {
		return nil, err
	}
	k := request.Key(ctx, r.Name)
	if err := s.allowed(ctx, k, r); err != nil {
		return nil, err
	}
	_, err := s.Store.UpdateSession(ctx, store.UpdateSession{
		Key: k, Request: request.Lasting("UpdateSession", r.Name, r),
		Change: func(session *sessionv1.Session) error { return updateSession(session, r) },
	})
	if errors.Is(err, store.ErrTooMany) {
		return nil, refusal.Input("labels", fmt.Sprintf("The session would have more than %d labels. Remove some with remove_labels.", maxLabels))
	}
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Name, RequestID: r.RequestId})
	}
	session, err := s.Store.GetSession(ctx, k)
	return &sessionv1.UpdateSessionResponse{Session: session}, refusal.Store(err, refusal.Subject{Session: r.Name})
}

// allowed refuses options that the session's agent does not allow.
func (s *SessionServer) allowed(ctx context.Context, k store.Key, r *sessionv1.UpdateSessionRequest) error {
	if r.TurnOptions == nil {
		return nil
	}
	spec, err := s.Directory.Pinned(ctx, k, r.Name)
	if err != nil {
		return err
	}
	if err := s.Submit.CheckMode(ctx, spec, r.TurnOptions, "turn_options"); err != nil {
		return err
	}
	return s.Submit.CheckOptions(ctx, spec, r.TurnOptions, "turn_options", false)
}

func updateSession(session *sessionv1.Session, r *sessionv1.UpdateSessionRequest) error {
	if r.Title != nil {
		session.Title = *r.Title
	}
	if r.MetadataJson != nil {
		session.MetadataJson = *r.MetadataJson
	}
	if r.TurnOptions != nil {
		session.TurnOptions = r.TurnOptions
	}
	for _, name := range r.RemoveLabels {
		delete(session.Labels, name)
	}
	for name, value := range r.Labels {
		if session.Labels == nil {
			session.Labels = map[string]string{}
		}
		session.Labels[name] = value
	}
	if len(session.Labels) > maxLabels {
		return store.ErrTooMany
	}
	return nil
}

// ArchiveSession archives a session, or brings it back.
func (s *SessionServer) ArchiveSession(ctx context.Context, r *sessionv1.ArchiveSessionRequest) (*sessionv1.ArchiveSessionResponse, error) {
	k := request.Key(ctx, r.Name)
	_, err := s.Store.ArchiveSession(ctx, store.ArchiveSession{
		Key: k, Undo: r.Undo, Request: request.Lasting("ArchiveSession", r.Name, r),
	})
	if err != nil {
		return nil, sessionError(err, refusal.Subject{Session: r.Name, RequestID: r.RequestId})
	}
	session, err := s.Store.GetSession(ctx, k)
	return &sessionv1.ArchiveSessionResponse{Session: session}, refusal.Store(err, refusal.Subject{Session: r.Name})
}
