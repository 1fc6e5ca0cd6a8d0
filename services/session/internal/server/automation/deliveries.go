package automation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
	"github.com/fairlead/fairlead/services/session/internal/trigger"
)

// maxContent bounds the content of a delivery as the agent reads it.
const maxContent = 256 << 10

// FireTrigger takes a delivery and makes a turn of it, once. Its caller is anonymous: the delivery's secret decides.
func (x *TriggerServer) FireTrigger(ctx context.Context, r *sessionv1.FireTriggerRequest) (*sessionv1.FireTriggerResponse, error) {
	row, err := x.Store.FindTrigger(ctx, strings.TrimPrefix(r.Name, "triggers/"))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	if err != nil || !trigger.Verify(row.Trigger.Proof, secrets(row), r) {
		return nil, refusal.Of(codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_REFUSED,
			fmt.Sprintf("There is no trigger %s, or the delivery does not have its secret. Send it to the trigger's path, signed with the secret, within five minutes.", r.Name))
	}
	rpc.Identify(ctx, row.Tenant, row.Trigger.Name)
	ctx = principal.With(ctx, principal.Principal{Tenant: row.Tenant, User: row.User, Role: principal.RoleUser, Credential: row.Trigger.Name})
	if err := x.Admit(ctx); err != nil {
		return nil, err
	}
	if !trigger.Makes(r) {
		return &sessionv1.FireTriggerResponse{}, nil
	}
	turn, err := x.fire(ctx, row, r)
	fired := store.TriggerFired{Tenant: row.Tenant, ID: row.ID, Turn: turn}
	if err != nil {
		fired.Error = strings.TrimSpace(apierr.Message(err))
	}
	if noted := x.Store.TriggerFired(ctx, fired); noted != nil && err == nil {
		return nil, refusal.Store(noted, refusal.Subject{}) // the sender repeats it, and gets the same turn
	}
	if err != nil {
		return nil, err
	}
	return &sessionv1.FireTriggerResponse{Turn: turn}, nil
}

// secrets returns the secrets that are good.
func secrets(row *store.TriggerRow) [][]byte {
	all := [][]byte{row.Secret}
	if row.Now.Before(row.OldUntil) {
		all = append(all, row.OldSecret)
	}
	return all
}

// fire makes the turn of a delivery, and returns its name.
func (x *TriggerServer) fire(ctx context.Context, row *store.TriggerRow, r *sessionv1.FireTriggerRequest) (string, error) {
	t := row.Trigger
	if t.Paused {
		return "", refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_PAUSED,
			fmt.Sprintf("%s is paused, or its user was deleted. Let it go on with `fairlead triggers resume`.", t.Name), apierr.Precondition("PAUSED", t.Name, "is paused"))
	}
	why, err := x.Submit.MayNotSend(ctx, request.Key(ctx, t.Session), row.User)
	switch {
	case err != nil:
		return "", refusal.Store(err, refusal.Subject{Session: t.Session})
	case why != "":
		return "", refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_USER, fmt.Sprintf("%s makes no turn, because %s.", t.Name, why))
	}
	content := trigger.Content(r)
	switch {
	case !utf8.ValidString(content):
		return "", refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_DELIVERY, "The content of the delivery is not UTF-8. Send text, such as JSON.",
			apierr.Field("payload", "is not UTF-8"))
	case len(content) > maxContent:
		return "", refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_DELIVERY, "The form of the delivery has more than 256 KiB as JSON. Send less, or send JSON.",
			apierr.Field("payload", "has more than 256 KiB as JSON"))
	}
	text, from, requestID := trigger.Message(t.Text, r.Event, content), submit.Origin{Trigger: t.Name}, trigger.RequestID(row.ID, r)
	if t.Session != "" {
		made, err := x.Submit.Accept(ctx, submit.Message{Method: "Trigger", Origin: from, Request: &sessionv1.CreateTurnRequest{
			Parent: t.Session, Text: text, OnActive: t.OnActive, Limits: t.Limits, RequestId: requestID,
		}})
		return made.GetName(), err
	}
	made, err := x.Create(ctx, &sessionv1.CreateSessionRequest{
		Session: &sessionv1.Session{Agent: t.Agent, FirstMessage: &sessionv1.FirstMessage{Text: text}}, RequestId: requestID,
	}, from, t.Limits)
	return made.GetSession().GetFirstTurn(), err
}
