package integration

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

const talk = "fallback: {steps: [{text: [done]}]}\n"

// late makes schedules that should have sent an hour ago.
type late struct{ store.Store }

func (s late) CreateSchedule(ctx context.Context, n store.NewSchedule) (store.Answer, error) {
	n.Next = func(now time.Time) time.Time { return now.Add(-time.Hour).Truncate(time.Second) }
	return s.Store.CreateSchedule(ctx, n)
}

// startLate runs a service whose schedules are due at once, and whose store
// fails where the test wants it to.
func startLate(t *testing.T, scenario string, tell func(*faulty.Store)) (*fixture, sessionv1.ScheduleServiceClient) {
	t.Helper()
	wrap := func(s store.Store) store.Store {
		f := faulty.New(late{s})
		tell(f)
		return f
	}
	f := startOn(t, wrap, scenario)
	return f, sessionv1.NewScheduleServiceClient(f.conn)
}

// until asks until ok.
func until[T any](ctx context.Context, t *testing.T, ask func() (T, error), ok func(T) bool) T {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		v, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		if ok(v) {
			return v
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never came about: %v", v)
		}
	}
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestAScheduleSendsOneTurnForAllTimesThatWereMissed(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*faulty.Store){
		"when nothing fails":                                func(*faulty.Store) {},
		"when the note is lost after the turn was sent":     func(s *faulty.Store) { s.Fail(faulty.ScheduleFired, 1, faulty.Before, nil) },
		"when the turn was sent and the answer was lost":    func(s *faulty.Store) { s.Fail(faulty.Submit, 1, faulty.After, nil) },
		"when the note was written and the answer was lost": func(s *faulty.Store) { s.Fail(faulty.ScheduleFired, 1, faulty.After, nil) },
		"when the job's end is lost":                        func(s *faulty.Store) { s.Fail(faulty.EndJob, 1, faulty.Before, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, schedules := startLate(t, talk, fault)
			ctx := deadline(t)
			parent := f.session(ctx, t)
			made, err := schedules.CreateSchedule(ctx, &sessionv1.CreateScheduleRequest{
				Parent: parent, ScheduleId: "hourly", Schedule: &sessionv1.Schedule{Cron: "@every 1m", Text: "look"},
			})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			got := until(ctx, t, func() (*sessionv1.Schedule, error) {
				resp, err := schedules.GetSchedule(ctx, &sessionv1.GetScheduleRequest{Name: made.Schedule.Name})
				return resp.GetSchedule(), err
			}, func(s *sessionv1.Schedule) bool { return s.LastTurn != "" && s.NextTime.AsTime().After(begin) })
			if got.LastError != "" || got.NextTime.AsTime().After(begin.Add(2*time.Minute)) {
				t.Errorf("schedule %v", got)
			}
			turn := until(ctx, t, func() (*sessionv1.Turn, error) {
				resp, err := f.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: got.LastTurn})
				return resp.GetTurn(), err
			}, func(x *sessionv1.Turn) bool { return x.State == sessionv1.TurnState_TURN_STATE_COMPLETE })
			if turn.Schedule != made.Schedule.Name || turn.User == "" {
				t.Errorf("turn %v", turn)
			}
			if states := f.states(ctx, t, parent); states != "COMPLETE" {
				t.Errorf("turns %s", states)
			}
		})
	}
}

func TestATimeIsLeftOutAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on    sessionv1.OnActive
		fault func(*faulty.Store)
		says  string
	}{
		"when a turn is active and it asks to be refused then": {sessionv1.OnActive_ON_ACTIVE_REJECT, func(*faulty.Store) {}, "active or queued turn"},
		"when the queue is full": {
			sessionv1.OnActive_ON_ACTIVE_QUEUE, func(s *faulty.Store) { s.Fail(faulty.Submit, 2, faulty.Before, store.ErrQueueFull) }, "turns wait",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, schedules := startLate(t, asking, c.fault)
			ctx := deadline(t)
			parent := f.waiting(ctx, t)
			made, err := schedules.CreateSchedule(ctx, &sessionv1.CreateScheduleRequest{
				Parent: parent, Schedule: &sessionv1.Schedule{Cron: "@hourly", Text: "look", OnActive: c.on},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := until(ctx, t, func() (*sessionv1.Schedule, error) {
				resp, err := schedules.GetSchedule(ctx, &sessionv1.GetScheduleRequest{Name: made.Schedule.Name})
				return resp.GetSchedule(), err
			}, func(s *sessionv1.Schedule) bool { return s.LastError != "" })
			if !strings.Contains(got.LastError, c.says) || got.LastTurn != "" || !got.NextTime.AsTime().After(time.Now()) {
				t.Errorf("schedule %v", got)
			}
			if states := f.states(ctx, t, parent); states != "WAITING" {
				t.Errorf("turns %s", states)
			}
		})
	}
}

func TestTheScheduleOfADeletedUserSendsNothing(t *testing.T) {
	t.Parallel()
	var db *faulty.Store
	f, schedules := startLate(t, talk, func(s *faulty.Store) { db = s })
	ann := store.Owner{Tenant: "default", User: "ann"}
	if _, err := db.CreateUser(t.Context(), store.NewUser{Owner: ann, Role: commonv1.Role_ROLE_USER}); err != nil {
		t.Fatal(err)
	}
	ctx := as(deadline(t), "ann", principal.RoleUser)
	parent := f.session(ctx, t)
	if _, err := db.DisableUser(t.Context(), ann, store.Request{}); err != nil {
		t.Fatal(err)
	}
	made, err := schedules.CreateSchedule(ctx, &sessionv1.CreateScheduleRequest{Parent: parent, Schedule: &sessionv1.Schedule{Cron: "@hourly", Text: "look"}})
	if err != nil {
		t.Fatal(err)
	}
	got := until(ctx, t, func() (*sessionv1.Schedule, error) {
		resp, err := schedules.GetSchedule(ctx, &sessionv1.GetScheduleRequest{Name: made.Schedule.Name})
		return resp.GetSchedule(), err
	}, func(s *sessionv1.Schedule) bool { return s.LastError != "" || s.LastTurn != "" })
	if !strings.Contains(got.LastError, "was deleted") || got.LastTurn != "" || f.states(ctx, t, parent) != "" {
		t.Errorf("schedule %v, turns %q", got, f.states(ctx, t, parent))
	}
}

func TestScheduleLifeCycle(t *testing.T) {
	t.Parallel()
	f := start(t, talk)
	ctx := deadline(t)
	schedules := sessionv1.NewScheduleServiceClient(f.conn)
	parent := f.session(ctx, t)
	req := &sessionv1.CreateScheduleRequest{Parent: parent, Schedule: &sessionv1.Schedule{
		Cron: "30 6 * * 1-5", TimeZone: "Europe/Berlin", Text: "look", OnActive: sessionv1.OnActive_ON_ACTIVE_STEER,
	}, RequestId: "r"}
	made, err := schedules.CreateSchedule(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	again, err := schedules.CreateSchedule(ctx, req)
	if err != nil || again.Schedule.Name != made.Schedule.Name {
		t.Errorf("the same request made %v, %v", again, err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if at := made.Schedule.NextTime.AsTime().In(berlin); at.Hour() != 6 || at.Minute() != 30 {
		t.Errorf("it sends next at %v", at)
	}
	name := made.Schedule.Name
	paused, err := schedules.PauseSchedule(ctx, &sessionv1.PauseScheduleRequest{Name: name, Paused: true})
	if err != nil || !paused.Schedule.Paused || paused.Schedule.NextTime != nil {
		t.Errorf("paused: %v, %v", paused, err)
	}
	resumed, err := schedules.PauseSchedule(ctx, &sessionv1.PauseScheduleRequest{Name: name})
	if err != nil || resumed.Schedule.Paused || !resumed.Schedule.NextTime.AsTime().Equal(made.Schedule.NextTime.AsTime()) {
		t.Errorf("resumed: %v, %v", resumed, err)
	}
	if _, err := schedules.CreateSchedule(ctx, &sessionv1.CreateScheduleRequest{Parent: parent, Schedule: &sessionv1.Schedule{Cron: "@daily", Text: "a"}}); err != nil {
		t.Fatal(err)
	}
	page, err := schedules.ListSchedules(ctx, &sessionv1.ListSchedulesRequest{Parent: parent, PageSize: 1})
	if err != nil || len(page.Schedules) != 1 || page.NextPageToken == "" {
		t.Fatalf("page %v, %v", page, err)
	}
	page, err = schedules.ListSchedules(ctx, &sessionv1.ListSchedulesRequest{Parent: parent, PageSize: 1, PageToken: page.NextPageToken})
	if err != nil || len(page.Schedules) != 1 || page.NextPageToken != "" {
		t.Fatalf("page %v, %v", page, err)
	}
	if _, err := schedules.DeleteSchedule(ctx, &sessionv1.DeleteScheduleRequest{Name: name, RequestId: "d"}); err != nil {
		t.Fatal(err)
	}
	if _, err := schedules.DeleteSchedule(ctx, &sessionv1.DeleteScheduleRequest{Name: name, RequestId: "d"}); err != nil {
		t.Errorf("the same request again: %v", err)
	}
	if _, err := schedules.GetSchedule(ctx, &sessionv1.GetScheduleRequest{Name: name}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SCHEDULE_NOT_FOUND) {
		t.Errorf("get: %v", err)
	}
}

func TestHooksRefuse(t *testing.T) {
	t.Parallel()
	f := start(t, talk)
	ctx := deadline(t)
	schedules, webhooks := sessionv1.NewScheduleServiceClient(f.conn), sessionv1.NewWebhookServiceClient(f.conn)
	parent := f.session(ctx, t)
	schedule := func(cron, zone, id string) error {
		_, err := schedules.CreateSchedule(ctx, &sessionv1.CreateScheduleRequest{
			Parent: parent, ScheduleId: id, Schedule: &sessionv1.Schedule{Cron: cron, TimeZone: zone, Text: "x"},
		})
		return err
	}
	webhook := func(url, session, id string) error {
		_, err := webhooks.CreateWebhook(ctx, &sessionv1.CreateWebhookRequest{WebhookId: id, Webhook: &sessionv1.Webhook{Url: url, Session: session}})
		return err
	}
	// Before the cases, which come in any order: one of them fills the tenant.
	if err := errors.Join(schedule("@daily", "", "twice"), webhook("https://example.com/", "", "twice")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		do     func() error
		code   codes.Code
		reason string
		says   string
	}{
		"times that cannot be read": {func() error { return schedule("61 * * * *", "", "") }, codes.InvalidArgument, "BAD_SCHEDULE", "61"},
		"times that never come":     {func() error { return schedule("0 0 30 2 *", "", "") }, codes.InvalidArgument, "BAD_SCHEDULE", "no time"},
		"an unknown zone":           {func() error { return schedule("@daily", "Mars/Base", "") }, codes.InvalidArgument, "BAD_SCHEDULE", "Mars/Base"},
		"less than a minute":        {func() error { return schedule("@every 59s", "", "") }, codes.InvalidArgument, "BAD_SCHEDULE", "1m"},
		"a schedule's id twice":     {func() error { return schedule("@daily", "", "twice") }, codes.AlreadyExists, "ALREADY_EXISTS", "twice"},
		"a schedule too many": {func() error {
			for range store.MaxSchedules {
				if err := schedule("@daily", "", ""); err != nil {
					return err
				}
			}
			return schedule("@daily", "", "")
		}, codes.ResourceExhausted, "TOO_MANY", "100"},
		"a limit above the ceiling": {func() error {
			_, err := schedules.CreateSchedule(ctx, &sessionv1.CreateScheduleRequest{Parent: parent, Schedule: &sessionv1.Schedule{
				Cron: "@daily", Text: "x", Limits: &sessionv1.TurnLimits{MaxOutputTokens: 1 << 60},
			}})
			return err
		}, codes.InvalidArgument, "LIMIT_ABOVE_CEILING", "operator"},
		"http":                 {func() error { return webhook("http://example.com/", "", "") }, codes.InvalidArgument, "BAD_WEBHOOK_URL", "https"},
		"an inner address":     {func() error { return webhook("https://10.0.0.1/", "", "") }, codes.InvalidArgument, "BAD_WEBHOOK_URL", "not public"},
		"a session not there":  {func() error { return webhook("https://example.com/", "sessions/none", "") }, codes.NotFound, "SESSION_NOT_FOUND", "none"},
		"a webhook's id twice": {func() error { return webhook("https://example.com/", "", "twice") }, codes.AlreadyExists, "ALREADY_EXISTS", "twice"},
		"a webhook too many": {func() error {
			for range store.MaxWebhooks {
				if err := webhook("https://example.com/", "", ""); err != nil {
					return err
				}
			}
			return webhook("https://example.com/", "", "")
		}, codes.ResourceExhausted, "TOO_MANY", "50"},
		"a webhook not there": {func() error {
			_, err := webhooks.ListDeliveries(ctx, &sessionv1.ListDeliveriesRequest{Parent: "webhooks/none"})
			return err
		}, codes.NotFound, "WEBHOOK_NOT_FOUND", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.do()
			if status.Code(err) != c.code || apierr.Reason(err) != c.reason || !strings.Contains(apierr.Message(err), c.says) {
				t.Errorf("%v (%s)", err, apierr.Reason(err))
			}
		})
	}
}

// received is a message as the receiver got it.
type received struct {
	id   string
	body []byte
	err  error // of the signature
}

// receiver takes messages after failing n times.
func receiver(t *testing.T, secret func() string, n int) (*httptest.Server, chan received) {
	t.Helper()
	got := make(chan received, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			var wh *standardwebhooks.Webhook
			if wh, err = standardwebhooks.NewWebhook(secret()); err == nil {
				err = wh.Verify(body, r.Header)
			}
		}
		if n--; n >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		got <- received{r.Header.Get("webhook-id"), body, err}
	}))
	t.Cleanup(server.Close)
	return server, got
}

func TestAReceiverVerifiesAcrossARotation(t *testing.T) {
	t.Parallel()
	var known string // what the receiver verifies with
	server, got := receiver(t, func() string { return known }, 0)
	f := start(t, talk, func(c *session.Config) { c.Webhooks.AllowHTTP, c.Webhooks.AllowPrivate = true, true })
	ctx := deadline(t)
	webhooks := sessionv1.NewWebhookServiceClient(f.conn)
	made, err := webhooks.CreateWebhook(ctx, &sessionv1.CreateWebhookRequest{WebhookId: "w", Webhook: &sessionv1.Webhook{Url: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	parent := f.session(ctx, t)
	rotate := &sessionv1.RotateWebhookSecretRequest{Name: "webhooks/w", RequestId: "r"}
	rotated, err := webhooks.RotateWebhookSecret(ctx, rotate)
	if err != nil || rotated.Secret == made.Secret || time.Until(rotated.Webhook.OldSecretExpireTime.AsTime()) < 23*time.Hour {
		t.Fatalf("%v, %v", rotated.GetWebhook(), err)
	}
	if again, err := webhooks.RotateWebhookSecret(ctx, rotate); err != nil || again.Secret != rotated.Secret {
		t.Errorf("the same request again: %v", err)
	}
	for name, secret := range map[string]string{"the old secret": made.Secret, "the new secret": rotated.Secret} {
		known = secret
		f.turn(ctx, t, parent, "hello")
		if m := <-got; m.err != nil {
			t.Errorf("%s: %v", name, m.err)
		}
	}
	rotate = &sessionv1.RotateWebhookSecretRequest{Name: "webhooks/w", RevokeOld: true}
	if rotated, err = webhooks.RotateWebhookSecret(ctx, rotate); err != nil || rotated.Webhook.OldSecretExpireTime != nil {
		t.Fatalf("%v, %v", rotated.GetWebhook(), err)
	}
	f.turn(ctx, t, parent, "hello") // known is a secret that was revoked, or one before it
	if m := <-got; m.err == nil {
		t.Error("a revoked secret still signs")
	}
	if _, err := webhooks.RotateWebhookSecret(ctx, &sessionv1.RotateWebhookSecretRequest{Name: "webhooks/none"}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_WEBHOOK_NOT_FOUND) {
		t.Errorf("a webhook that is not there: %v", err)
	}
}

func TestAWebhookIsToldOnceThoughItFailsTwice(t *testing.T) {
	t.Parallel()
	var secret string
	server, got := receiver(t, func() string { return secret }, 2)
	f := start(t, talk, func(c *session.Config) {
		c.Webhooks.AllowHTTP, c.Webhooks.AllowPrivate, c.Webhooks.FirstPause = true, true, 10*time.Millisecond
	})
	ctx := deadline(t)
	webhooks := sessionv1.NewWebhookServiceClient(f.conn)
	req := &sessionv1.CreateWebhookRequest{WebhookId: "mine", Webhook: &sessionv1.Webhook{Url: server.URL + "/hook"}, RequestId: "r"}
	made, err := webhooks.CreateWebhook(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	secret = made.Secret
	if again, err := webhooks.CreateWebhook(ctx, req); err != nil || again.Secret != secret {
		t.Errorf("the same request again: %v", err)
	}
	other := f.session(ctx, t)
	if _, err := webhooks.CreateWebhook(ctx, &sessionv1.CreateWebhookRequest{WebhookId: "other", Webhook: &sessionv1.Webhook{Url: server.URL, Session: other}}); err != nil {
		t.Fatal(err)
	}
	parent := f.session(ctx, t)
	f.turn(ctx, t, parent, "hello")
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for i := range 3 {
		m := <-got
		if m.err != nil || id != "" && m.id != id {
			t.Errorf("message %d: id %s, signature %v", i, m.id, m.err)
		}
		id = m.id
		var body struct {
			Type string
			Data struct{ Name, State, FinalText string }
		}
		if err := json.Unmarshal(m.body, &body); err != nil {
			t.Fatal(err)
		}
		if body.Type != "turn.finished" || body.Data.Name != turns.Turns[0].Name || body.Data.State != "TURN_STATE_COMPLETE" || body.Data.FinalText != "done" {
			t.Errorf("body %s", m.body)
		}
	}
	list := until(ctx, t, func() (*sessionv1.ListDeliveriesResponse, error) {
		return webhooks.ListDeliveries(ctx, &sessionv1.ListDeliveriesRequest{Parent: "webhooks/mine"})
	}, func(r *sessionv1.ListDeliveriesResponse) bool {
		return len(r.Deliveries) == 1 && r.Deliveries[0].State == "DELIVERED"
	})
	d := list.Deliveries[0]
	if d.Id != id || d.Attempts != 3 || d.LastStatus != 200 || d.LastError != "" || d.Turn != turns.Turns[0].Name || d.NextTime != nil {
		t.Errorf("delivery %v", d)
	}
	none, err := webhooks.ListDeliveries(ctx, &sessionv1.ListDeliveriesRequest{Parent: "webhooks/other"})
	if err != nil || len(none.Deliveries) != 0 {
		t.Errorf("the other session's webhook was told: %v, %v", none, err)
	}
	listed, err := webhooks.ListWebhooks(ctx, &sessionv1.ListWebhooksRequest{})
	if err != nil || len(listed.Webhooks) != 2 || strings.Contains(listed.String(), strings.TrimPrefix(secret, "whsec_")) {
		t.Errorf("webhooks %v, %v", listed, err)
	}
	if _, err := webhooks.DeleteWebhook(ctx, &sessionv1.DeleteWebhookRequest{Name: "webhooks/mine"}); err != nil {
		t.Fatal(err)
	}
	_, err = webhooks.GetWebhook(ctx, &sessionv1.GetWebhookRequest{Name: "webhooks/mine"})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_WEBHOOK_NOT_FOUND) {
		t.Error(err)
	}
}
