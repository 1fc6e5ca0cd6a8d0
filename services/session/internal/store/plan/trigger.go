package plan

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Trigger is a trigger's row.
type Trigger struct {
	store.Owner
	ID, Session         string // Session is an id; empty: each delivery makes one
	Body                []byte // the request, as a marshaled Trigger
	Secret, OldSecret   []byte
	OldUntil            *time.Time // nil: no old secret
	Paused              bool
	CreateTime          time.Time
	LastTime            *time.Time
	LastTurn, LastError string
}

// ForTrigger returns the row of a new trigger at the time now. session is the one that it is for, if any.
func ForTrigger(n store.NewTrigger, session string, now time.Time) (*Trigger, error) {
	t := n.Trigger
	body, err := proto.Marshal(&sessionv1.Trigger{
		Session: t.GetSession(), Agent: t.GetAgent(), Text: t.GetText(), OnActive: t.GetOnActive(), Limits: t.GetLimits(), Proof: t.GetProof(),
	})
	if err != nil {
		return nil, fmt.Errorf("marshal trigger: %w", err)
	}
	return &Trigger{Owner: n.Owner, ID: n.ID, Session: session, Body: body, Secret: n.Secret, CreateTime: now}, nil
}

// Proto returns the resource of the row.
func (t *Trigger) Proto() (*sessionv1.Trigger, error) {
	out := &sessionv1.Trigger{}
	if err := proto.Unmarshal(t.Body, out); err != nil {
		return nil, fmt.Errorf("read trigger %s: %w", t.ID, err)
	}
	out.Name, out.User, out.Paused = "triggers/"+t.ID, "users/"+t.User, t.Paused
	out.LastTurn, out.LastError = t.LastTurn, t.LastError
	out.CreateTime = timestamppb.New(t.CreateTime)
	if t.LastTime != nil {
		out.LastTime = timestamppb.New(*t.LastTime)
	}
	if t.OldUntil != nil {
		out.OldSecretExpireTime = timestamppb.New(*t.OldUntil)
	}
	return out, nil
}

// Row returns the trigger with its secret at the time now.
func (t *Trigger) Row(now time.Time) (*store.TriggerRow, error) {
	p, err := t.Proto()
	if err != nil {
		return nil, err
	}
	out := &store.TriggerRow{Owner: t.Owner, ID: t.ID, Trigger: p, Secret: t.Secret, Now: now}
	if t.OldUntil != nil {
		out.OldSecret, out.OldUntil = t.OldSecret, *t.OldUntil
	}
	return out, nil
}
