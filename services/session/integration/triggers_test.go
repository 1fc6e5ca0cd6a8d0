package integration

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
)

// sender is a system that delivers to a trigger.
type sender struct {
	sessionv1.TriggerServiceClient
	t      *testing.T
	name   string
	secret string
}

func (f *fixture) trigger(ctx context.Context, t *testing.T, x *sessionv1.Trigger) *sender {
	t.Helper()
	c := sessionv1.NewTriggerServiceClient(f.conn)
	made, err := c.CreateTrigger(ctx, &sessionv1.CreateTriggerRequest{Trigger: x})
	if err != nil {
		t.Fatal(err)
	}
	if made.Secret == "" || !strings.HasPrefix(made.Path, "/v1/"+made.Trigger.Name+":fire") {
		t.Fatalf("path %q", made.Path)
	}
	return &sender{c, t, made.Trigger.Name, made.Secret}
}

// github delivers as GitHub does.
func (s *sender) github(delivery, payload string) (string, error) {
	mac := hmac.New(sha256.New, []byte(s.secret))
	mac.Write([]byte(payload))
	resp, err := s.FireTrigger(s.t.Context(), &sessionv1.FireTriggerRequest{
		Name: s.name, Delivery: delivery, Payload: []byte(payload), HubSignature: "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	})
	return resp.GetTurn(), err
}

// standard delivers as the Standard Webhooks specification says.
func (s *sender) standard(delivery, payload string) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.secret, "whsec_"))
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	signature, err := w.Sign(delivery, now, []byte(payload))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.FireTrigger(s.t.Context(), &sessionv1.FireTriggerRequest{
		Name: s.name, Delivery: delivery, Payload: []byte(payload), WebhookSignature: signature, WebhookTimestamp: strconv.FormatInt(now.Unix(), 10),
	})
	return resp.GetTurn(), err
}

func wants(t *testing.T, what string, err error, code codes.Code, reason sessionv1.ErrorReason) {
	t.Helper()
	if apierr.Code(err) != code || !apierr.Is(err, reason) {
		t.Errorf("%s: %v, not %s %s", what, err, code, reason)
	}
}

func TestADeliveryMakesOneTurnOfItsSession(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, talk), t.Context()
	parent := f.session(ctx, t)
	s := f.trigger(ctx, t, &sessionv1.Trigger{Session: parent, Text: "Look at {{payload}} now.", Limits: &sessionv1.TurnLimits{MaxSteps: 3}})
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := map[string]int{}
	for range 8 {
		wg.Go(func() {
			turn, err := s.github("d1", `{"n":1}`)
			mu.Lock()
			defer mu.Unlock()
			if made[turn]++; err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	other, err := s.standard("d2", `{"n":2}`)
	if err != nil || len(made) != 1 || made[other] != 0 {
		t.Errorf("turns %v and %s, %v", made, other, err)
	}
	_, err = s.github("d1", `{"n":3}`)
	wants(t, "another content under the same id", err, codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED)
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: parent})
	if err != nil || len(turns.Turns) != 2 {
		t.Fatalf("%v, %v", turns, err)
	}
	done := until(ctx, t, func() (*sessionv1.GetTurnResponse, error) {
		return f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: turns.Turns[0].Name})
	}, func(r *sessionv1.GetTurnResponse) bool {
		return r.Turn.State == sessionv1.TurnState_TURN_STATE_COMPLETE
	}).Turn
	if done.Trigger != s.name || done.User != "default" || done.Limits.MaxSteps != 3 {
		t.Errorf("%v", done)
	}
	messages, err := f.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	text := messages.Messages[0].GetBlocks()[0].GetContent().GetText().GetText()
	if !strings.HasPrefix(text, "Look at What stands between <payload-") || !strings.Contains(text, "\n{\"n\":1}\n</payload-") || !strings.HasSuffix(text, "> now.") {
		t.Errorf("the message is %s", text)
	}
	got, err := s.GetTrigger(ctx, &sessionv1.GetTriggerRequest{Name: s.name})
	if err != nil || got.Trigger.LastTime == nil || got.Trigger.LastTurn == "" || strings.Contains(got.String(), s.secret) {
		t.Errorf("%v, %v", got, err)
	}
}

// GitHub sends a form unless its owner chooses JSON, and a ping when a hook is made. Both are signed as they are.
func TestADeliveryOfGitHubsForm(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, talk), t.Context()
	parent := f.session(ctx, t)
	s := f.trigger(ctx, t, &sessionv1.Trigger{Session: parent, Text: "Look."})
	send := func(event, delivery, payload string) (*sessionv1.FireTriggerResponse, error) {
		mac := hmac.New(sha256.New, []byte(s.secret))
		mac.Write([]byte(payload))
		return s.FireTrigger(ctx, &sessionv1.FireTriggerRequest{
			Name: s.name, Delivery: delivery, Payload: []byte(payload), HubSignature: "sha256=" + hex.EncodeToString(mac.Sum(nil)),
			ContentType: "application/x-www-form-urlencoded", Event: event,
		})
	}
	if got, err := send("ping", "d0", "payload=%7B%22zen%22%3A%22x%22%7D"); err != nil || got.GetTurn() != "" {
		t.Errorf("a ping is answered with %v, %v", got, err)
	}
	_, err := s.FireTrigger(ctx, &sessionv1.FireTriggerRequest{Name: s.name, Payload: []byte("{}"), Event: "ping"})
	wants(t, "a ping without the secret", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_REFUSED)
	if _, err := send("issues", "d1", "payload=%7B%22n%22%3A+12345678901234567890%7D"); err != nil {
		t.Fatal(err)
	}
	_, err = send("issues", "d2", "payload=%FF")
	wants(t, "a form that is not UTF-8", err, codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_DELIVERY)
	_, err = send("issues", "d3", "a="+strings.Repeat("%01", 80_000))
	wants(t, "a form that grows", err, codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_DELIVERY)
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: parent})
	if err != nil || len(turns.GetTurns()) != 1 {
		t.Fatalf("the turns are %v, %v", turns, err)
	}
	messages := until(ctx, t, func() (*sessionv1.ListMessagesResponse, error) {
		return f.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: parent})
	}, func(r *sessionv1.ListMessagesResponse) bool { return len(r.GetMessages()) > 0 })
	text := messages.GetMessages()[0].GetBlocks()[0].GetContent().GetText().GetText()
	if !strings.Contains(text, ">\nevent: issues\n\n{\"n\": 12345678901234567890}\n</payload-") {
		t.Errorf("the message is %s", text)
	}
}

func TestADeliveryMakesASessionOfItsAgent(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, talk), t.Context()
	s := f.trigger(ctx, t, &sessionv1.Trigger{Agent: "agents/tester", Text: "Look.", Limits: &sessionv1.TurnLimits{MaxSteps: 3}})
	first, err := s.github("d1", "a")
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.github("d1", "a")
	if err != nil || again != first {
		t.Errorf("again: %s, %v; first %s", again, err, first)
	}
	unnamed, err := s.github("", "b")
	if err != nil || strings.Split(unnamed, "/")[1] == strings.Split(first, "/")[1] {
		t.Errorf("another delivery: %s, %v", unnamed, err)
	}
	if same, err := s.github("", "b"); err != nil || same != unnamed {
		t.Errorf("a delivery without a name, again: %s, %v", same, err)
	}
	turn, err := f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: first})
	if err != nil || turn.Turn.Trigger != s.name || turn.Turn.Limits.MaxSteps != 3 {
		t.Errorf("%v, %v", turn, err)
	}
	all, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{})
	if err != nil || len(all.Sessions) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestWhoLacksTheSecretDeliversNothing(t *testing.T) {
	t.Parallel()
	f, ctx := start(t, talk), t.Context()
	parent := f.session(ctx, t)
	s := f.trigger(ctx, t, &sessionv1.Trigger{Session: parent, Text: "Look."})
	forged := *s
	forged.secret += "x"
	none := *s
	none.name = "triggers/none"
	for name, by := range map[string]*sender{"another secret": &forged, "no such trigger": &none} {
		_, err := by.github("d", "x")
		wants(t, name, err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_REFUSED)
	}
	_, err := s.github("d", "\xff")
	wants(t, "bytes", err, codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_DELIVERY)

	rotated, err := s.RotateTriggerSecret(ctx, &sessionv1.RotateTriggerSecretRequest{Name: s.name})
	if err != nil || rotated.Secret == s.secret {
		t.Fatal(rotated, err)
	}
	fresh := *s
	fresh.secret = rotated.Secret
	for name, by := range map[string]*sender{"old": s, "new": &fresh} {
		if _, err := by.github(name, "x"); err != nil {
			t.Errorf("the %s secret: %v", name, err)
		}
	}
	last, err := s.RotateTriggerSecret(ctx, &sessionv1.RotateTriggerSecretRequest{Name: s.name, RevokeOld: true})
	if err != nil || last.Trigger.OldSecretExpireTime != nil {
		t.Fatal(last, err)
	}
	for _, by := range []*sender{s, &fresh} {
		_, err := by.github("later", "x")
		wants(t, "a secret that was revoked", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_REFUSED)
	}
	s.secret = last.Secret
	if _, err := s.PauseTrigger(ctx, &sessionv1.PauseTriggerRequest{Name: s.name, Paused: true}); err != nil {
		t.Fatal(err)
	}
	_, err = s.github("paused", "x")
	wants(t, "while it is paused", err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_PAUSED)
	if _, err := s.DeleteTrigger(ctx, &sessionv1.DeleteTriggerRequest{Name: s.name}); err != nil {
		t.Fatal(err)
	}
	_, err = s.github("gone", "x")
	wants(t, "after its end", err, codes.Unauthenticated, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_REFUSED)
}

func TestATriggerEndsWithItsUser(t *testing.T) {
	t.Parallel()
	f := start(t, talk, func(c *session.Config) { c.Use.User.Turns = 3 })
	admin := principal.With(t.Context(), principal.Default())
	people := sessionv1.NewIdentityServiceClient(f.conn)
	if _, err := people.CreateUser(admin, &sessionv1.CreateUserRequest{UserId: "ann"}); err != nil {
		t.Fatal(err)
	}
	ann := principal.With(t.Context(), principal.Principal{Tenant: "default", User: "ann", Role: principal.RoleUser})
	bob := principal.With(t.Context(), principal.Principal{Tenant: "default", User: "bob", Role: principal.RoleUser})
	mine := f.session(ann, t)
	s := f.trigger(ann, t, &sessionv1.Trigger{Session: mine, Text: "Look."})
	if _, err := s.github("1", "x"); err != nil {
		t.Fatal(err)
	}
	_, err := s.CreateTrigger(bob, &sessionv1.CreateTriggerRequest{Trigger: &sessionv1.Trigger{Session: mine, Text: "x"}})
	wants(t, "bob's trigger of ann's session", err, codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND)
	for name, call := range map[string]func() error{
		"get":   func() error { _, err := s.GetTrigger(bob, &sessionv1.GetTriggerRequest{Name: s.name}); return err },
		"pause": func() error { _, err := s.PauseTrigger(bob, &sessionv1.PauseTriggerRequest{Name: s.name}); return err },
		"rotate": func() error {
			_, err := s.RotateTriggerSecret(bob, &sessionv1.RotateTriggerSecretRequest{Name: s.name})
			return err
		},
		"delete": func() error {
			_, err := s.DeleteTrigger(bob, &sessionv1.DeleteTriggerRequest{Name: s.name})
			return err
		},
	} {
		wants(t, "bob: "+name, call(), codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_NOT_FOUND)
	}
	if all, err := s.ListTriggers(bob, &sessionv1.ListTriggersRequest{}); err != nil || len(all.Triggers) != 0 {
		t.Errorf("bob's list: %v, %v", all, err)
	}
	if all, err := s.ListTriggers(admin, &sessionv1.ListTriggersRequest{}); err != nil || len(all.Triggers) != 1 {
		t.Errorf("the operator's list: %v, %v", all, err)
	}
	viewer, user := commonv1.Role_ROLE_VIEWER, commonv1.Role_ROLE_USER
	if _, err := people.UpdateUser(admin, &sessionv1.UpdateUserRequest{Name: "users/ann", Role: &viewer}); err != nil {
		t.Fatal(err)
	}
	_, err = s.github("2", "x")
	wants(t, "a viewer's", err, codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_USER)
	if _, err := people.UpdateUser(admin, &sessionv1.UpdateUserRequest{Name: "users/ann", Role: &user}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.github("3", "x"); err != nil {
		t.Errorf("a user's again: %v", err)
	}
	if _, err := people.DeleteUser(admin, &sessionv1.DeleteUserRequest{Name: "users/ann"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.github("4", "x")
	wants(t, "a deleted user's", err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_PAUSED)
	if _, err := people.CreateUser(admin, &sessionv1.CreateUserRequest{UserId: "ann"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.github("5", "x")
	wants(t, "that of a user who has come back", err, codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_PAUSED)
	if got, err := s.GetTrigger(ann, &sessionv1.GetTriggerRequest{Name: s.name}); err != nil || !strings.Contains(got.Trigger.LastError, "paused") {
		t.Errorf("%v, %v", got, err)
	}
}
