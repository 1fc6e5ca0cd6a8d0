package main

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// fakeHooks has one schedule and one webhook, and keeps the last request. One
// command at a time talks to it.
type fakeHooks struct {
	sessionv1.UnimplementedScheduleServiceServer
	sessionv1.UnimplementedWebhookServiceServer
	last proto.Message
}

func (f *fakeHooks) serve(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	sessionv1.RegisterScheduleServiceServer(server, f)
	sessionv1.RegisterWebhookServiceServer(server, f)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func aSchedule() *sessionv1.Schedule {
	return &sessionv1.Schedule{
		Name: "sessions/one/schedules/c1", Cron: "30 6 * * 1-5", TimeZone: "Europe/Berlin", Text: "good \x1b[31mmorning",
		OnActive: sessionv1.OnActive_ON_ACTIVE_STEER, LastTurn: "sessions/one/turns/t1",
	}
}

func (f *fakeHooks) CreateSchedule(_ context.Context, r *sessionv1.CreateScheduleRequest) (*sessionv1.CreateScheduleResponse, error) {
	f.last = r
	if r.GetParent() != "sessions/one" {
		return nil, apierr.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND, "There is no session "+r.GetParent()+".")
	}
	return &sessionv1.CreateScheduleResponse{Schedule: aSchedule()}, nil
}

func (f *fakeHooks) GetSchedule(_ context.Context, r *sessionv1.GetScheduleRequest) (*sessionv1.GetScheduleResponse, error) {
	f.last = r
	return &sessionv1.GetScheduleResponse{Schedule: aSchedule()}, nil
}

// ListSchedules has two pages.
func (f *fakeHooks) ListSchedules(_ context.Context, r *sessionv1.ListSchedulesRequest) (*sessionv1.ListSchedulesResponse, error) {
	f.last = r
	if r.GetPageToken() == "" {
		return &sessionv1.ListSchedulesResponse{Schedules: []*sessionv1.Schedule{aSchedule()}, NextPageToken: "2"}, nil
	}
	return &sessionv1.ListSchedulesResponse{Schedules: []*sessionv1.Schedule{
		{Name: "sessions/one/schedules/c2", Cron: "@daily", Text: "bye", Paused: true, LastError: "It was refused."},
	}}, nil
}

func (f *fakeHooks) PauseSchedule(_ context.Context, r *sessionv1.PauseScheduleRequest) (*sessionv1.PauseScheduleResponse, error) {
	f.last = r
	s := aSchedule()
	s.Paused = r.GetPaused()
	return &sessionv1.PauseScheduleResponse{Schedule: s}, nil
}

func (f *fakeHooks) DeleteSchedule(_ context.Context, r *sessionv1.DeleteScheduleRequest) (*sessionv1.DeleteScheduleResponse, error) {
	f.last = r
	return &sessionv1.DeleteScheduleResponse{}, nil
}

func aWebhook() *sessionv1.Webhook {
	return &sessionv1.Webhook{Name: "webhooks/w1", Url: "https://example.com/hook"}
}

func (f *fakeHooks) CreateWebhook(_ context.Context, r *sessionv1.CreateWebhookRequest) (*sessionv1.CreateWebhookResponse, error) {
	f.last = r
	return &sessionv1.CreateWebhookResponse{Webhook: aWebhook(), Secret: "whsec_aHVzaA=="}, nil
}

func (f *fakeHooks) RotateWebhookSecret(_ context.Context, r *sessionv1.RotateWebhookSecretRequest) (*sessionv1.RotateWebhookSecretResponse, error) {
	f.last = r
	return &sessionv1.RotateWebhookSecretResponse{Webhook: aWebhook(), Secret: "whsec_bmV3"}, nil
}

func (f *fakeHooks) GetWebhook(_ context.Context, r *sessionv1.GetWebhookRequest) (*sessionv1.GetWebhookResponse, error) {
	f.last = r
	return &sessionv1.GetWebhookResponse{Webhook: aWebhook()}, nil
}

func (f *fakeHooks) ListWebhooks(_ context.Context, r *sessionv1.ListWebhooksRequest) (*sessionv1.ListWebhooksResponse, error) {
	f.last = r
	second := &sessionv1.Webhook{Name: "webhooks/w2", Url: "https://example.com/two", Session: "sessions/one"}
	return &sessionv1.ListWebhooksResponse{Webhooks: []*sessionv1.Webhook{aWebhook(), second}}, nil
}

func (f *fakeHooks) DeleteWebhook(_ context.Context, r *sessionv1.DeleteWebhookRequest) (*sessionv1.DeleteWebhookResponse, error) {
	f.last = r
	return &sessionv1.DeleteWebhookResponse{}, nil
}

func (f *fakeHooks) ListDeliveries(_ context.Context, r *sessionv1.ListDeliveriesRequest) (*sessionv1.ListDeliveriesResponse, error) {
	f.last = r
	return &sessionv1.ListDeliveriesResponse{Deliveries: []*sessionv1.Delivery{
		{Id: "w1_t2", Turn: "sessions/one/turns/t2", State: "PENDING", Attempts: 2, LastStatus: 503, LastError: "the answer was 503 Service Unavailable"},
		{Id: "w1_t1", Turn: "sessions/one/turns/t1", State: "DELIVERED", Attempts: 1, LastStatus: 200},
	}}, nil
}

const scheduleTable = `
schedule    c1
times       30 6 * * 1-5
zone        Europe/Berlin
next        -
on active   steer
message     good morning
last turn   t1
last error  -
`

func TestSchedulesCommands(t *testing.T) {
	t.Parallel()
	const name = "sessions/one/schedules/c1"
	for _, c := range []struct {
		name string
		args []string
		want string
		asks proto.Message
	}{
		{
			"one is made", []string{"create", "one", "30 6 * * 1-5", "good morning", "--zone=Europe/Berlin", "--on-active=steer", "--id=c1", "--max-steps=5", "--timeout=1m"},
			scheduleTable, &sessionv1.CreateScheduleRequest{Parent: "sessions/one", ScheduleId: "c1", Schedule: &sessionv1.Schedule{
				Cron: "30 6 * * 1-5", TimeZone: "Europe/Berlin", Text: "good morning", OnActive: sessionv1.OnActive_ON_ACTIVE_STEER,
				Limits: &sessionv1.TurnLimits{MaxSteps: 5, MaxWallTime: durationpb.New(60e9)},
			}},
		},
		{"all pages are listed", []string{"list", "sessions/one"}, `
SCHEDULE  TIMES         ZONE           NEXT    LAST TURN  MESSAGE       LAST ERROR
c1        30 6 * * 1-5  Europe/Berlin  -       t1         good morning  -
c2        @daily        UTC            paused  -          bye           It was refused.
`, &sessionv1.ListSchedulesRequest{Parent: "sessions/one", PageSize: pageSize, PageToken: "2"}},
		{"one is shown", []string{"get", "one", "c1"}, scheduleTable, &sessionv1.GetScheduleRequest{Name: name}},
		{"one is shown by its full name", []string{"get", "one", name}, scheduleTable, &sessionv1.GetScheduleRequest{Name: name}},
		{
			"one is paused", []string{"pause", "one", "c1"}, strings.Replace(scheduleTable, "next        -", "next        paused", 1),
			&sessionv1.PauseScheduleRequest{Name: name, Paused: true},
		},
		{"one goes on", []string{"resume", "one", "c1"}, scheduleTable, &sessionv1.PauseScheduleRequest{Name: name}},
		{"one is deleted", []string{"delete", "one", "c1"}, "\ndeleted\n", &sessionv1.DeleteScheduleRequest{Name: name}},
		{"as JSON", []string{"pause", "one", "c1", "--json"}, `
{"name":"sessions/one/schedules/c1","cron":"30 6 * * 1-5","timeZone":"Europe/Berlin","text":"good \u001b[31mmorning","onActive":"ON_ACTIVE_STEER","paused":true,"lastTurn":"sessions/one/turns/t1"}
`, &sessionv1.PauseScheduleRequest{Name: name, Paused: true}},
	} {
		t.Run(c.name, func(t *testing.T) { checkHooks(t, "schedules", c.args, c.want, c.asks) })
	}
}

func TestWebhooksCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want string
		asks proto.Message
	}{
		{
			"one is made, and its secret shown", []string{"create", "https://example.com/hook", "--session=one", "--id=w1"}, `
webhook  w1
url      https://example.com/hook
session  all
created  -
secret   whsec_aHVzaA==
`, &sessionv1.CreateWebhookRequest{WebhookId: "w1", Webhook: &sessionv1.Webhook{Url: "https://example.com/hook", Session: "sessions/one"}},
		},
		{"one is made, as JSON", []string{"create", "https://example.com/hook", "--json"}, `
{"webhook":{"name":"webhooks/w1","url":"https://example.com/hook"},"secret":"whsec_aHVzaA=="}
`, &sessionv1.CreateWebhookRequest{Webhook: &sessionv1.Webhook{Url: "https://example.com/hook"}}},
		{"they are listed", []string{"list"}, `
WEBHOOK  SESSION  CREATED  URL
w1       all      -        https://example.com/hook
w2       one      -        https://example.com/two
`, &sessionv1.ListWebhooksRequest{PageSize: pageSize}},
		{"one is shown", []string{"get", "webhooks/w1"}, `
webhook  w1
url      https://example.com/hook
session  all
created  -
`, &sessionv1.GetWebhookRequest{Name: "webhooks/w1"}},
		{"its secret is rotated", []string{"rotate", "w1"}, `
webhook  w1
url      https://example.com/hook
session  all
created  -
secret   whsec_bmV3
`, &sessionv1.RotateWebhookSecretRequest{Name: "webhooks/w1"}},
		{"its old secret is revoked", []string{"rotate", "w1", "--revoke", "--json"}, `
{"webhook":{"name":"webhooks/w1","url":"https://example.com/hook"},"secret":"whsec_bmV3"}
`, &sessionv1.RotateWebhookSecretRequest{Name: "webhooks/w1", RevokeOld: true}},
		{"one is deleted", []string{"delete", "w1"}, "\ndeleted\n", &sessionv1.DeleteWebhookRequest{Name: "webhooks/w1"}},
		{"its deliveries are listed", []string{"deliveries", "w1", "--limit=7"}, `
SESSION  TURN  STATE      SENT  STATUS  CREATED  NEXT  LAST ERROR
one      t2    PENDING    2     503     -        -     the answer was 503 Service Unavailable
one      t1    DELIVERED  1     200     -        -     -
`, &sessionv1.ListDeliveriesRequest{Parent: "webhooks/w1", PageSize: 7}},
	} {
		t.Run(c.name, func(t *testing.T) { checkHooks(t, "webhooks", c.args, c.want, c.asks) })
	}
}

// checkHooks runs a command and looks at what it printed and asked for last.
func checkHooks(t *testing.T, group string, args []string, want string, asks proto.Message) {
	t.Helper()
	f := &fakeHooks{}
	got := embedded(t, append(append([]string{group}, args...), "--server", f.serve(t))...)
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got.out); diff != "" || got.code != 0 {
		t.Errorf("exit code %d %s (-want +got):\n%s", got.code, got.err, diff)
	}
	if key := asks.ProtoReflect().Descriptor().Fields().ByName("request_id"); key != nil {
		given := f.last.ProtoReflect().Get(key)
		if given.String() == "" {
			t.Error("the request has no idempotency key")
		}
		asks.ProtoReflect().Set(key, given)
	}
	if diff := cmp.Diff(asks, f.last, protocmp.Transform()); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

func TestARefusedScheduleIsExplained(t *testing.T) {
	t.Parallel()
	got := embedded(t, "schedules", "create", "two", "@daily", "hi", "--server", (&fakeHooks{}).serve(t))
	if got.code != 1 || !strings.Contains(got.err, "There is no session sessions/two.") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}
