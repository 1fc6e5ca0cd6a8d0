package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// message is one that a webhook got.
type message struct {
	header http.Header
	body   []byte
}

// verified tells whether a message is signed with the secret, as the Standard
// Webhooks specification says.
func (m message) verified(secret string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", m.header.Get("webhook-id"), m.header.Get("webhook-timestamp"), m.body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return slices.Contains(strings.Fields(m.header.Get("webhook-signature")), want)
}

// hook is a receiver that refuses the first message.
func hook(t *testing.T) (string, <-chan message) {
	t.Helper()
	got := make(chan message, 16)
	seen := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- message{r.Header, body}
		if seen++; seen == 1 { // one message is under way at a time
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hook", got
}

func next(t *testing.T, got <-chan message) message {
	t.Helper()
	select {
	case m := <-got:
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("no message came")
		return message{}
	}
}

func TestAWebhookIsToldOfATurnsEndUntilItTakesTheMessage(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		o.env = []string{
			"FAIRLEAD_SESSION_WEBHOOKS_ALLOW_HTTP=true", "FAIRLEAD_SESSION_WEBHOOKS_ALLOW_PRIVATE=true", "FAIRLEAD_SESSION_WEBHOOKS_FIRST_PAUSE=20ms",
		}
		s := start(t, o)
		url, got := hook(t)
		r := s.call(t, http.MethodPost, "/v1/webhooks?webhook_id=w1", `{"url":"`+url+`"}`)
		var made struct{ Secret string }
		if err := json.Unmarshal([]byte(r.body), &made); err != nil || r.code != http.StatusOK || !strings.HasPrefix(made.Secret, "whsec_") {
			t.Fatalf("create a webhook: %d %s", r.code, r.body)
		}
		session := s.session(t, "coder")
		last(t, s.turn(t, session, "hello"), "COMPLETE")
		refused, taken := next(t, got), next(t, got)
		if a, b := refused.header.Get("webhook-id"), taken.header.Get("webhook-id"); a == "" || a != b {
			t.Errorf("the message was %q at first and %q then", a, b)
		}
		if !refused.verified(made.Secret) || !taken.verified(made.Secret) {
			t.Errorf("the signature does not verify: %v", taken.header)
		}
		if taken.verified("whsec_" + base64.StdEncoding.EncodeToString([]byte("another key"))) {
			t.Error("the signature verifies with any key")
		}
		var told struct {
			Type string
			Data struct{ Name, State, FinalText string }
		}
		if err := json.Unmarshal(taken.body, &told); err != nil || told.Type != "turn.finished" || !strings.HasPrefix(told.Data.Name, session+"/turns/") ||
			told.Data.State != "TURN_STATE_COMPLETE" || told.Data.FinalText != "You said hello" {
			t.Errorf("it was told %s", taken.body)
		}
		s.delivered(t, "w1")
		if r := s.call(t, http.MethodGet, "/v1/webhooks/w1", ""); r.code != http.StatusOK || strings.Contains(r.body, "whsec_") {
			t.Errorf("read the webhook: %d %s", r.code, r.body)
		}
		if r := s.call(t, http.MethodDelete, "/v1/webhooks/w1", ""); r.code != http.StatusOK {
			t.Errorf("delete the webhook: %d %s", r.code, r.body)
		}
	})
}

// delivered waits until the log of deliveries says what became of the message:
// that is noted after the receiver has answered.
func (s *system) delivered(t *testing.T, webhook string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		r := s.call(t, http.MethodGet, "/v1/webhooks/"+webhook+"/deliveries", "")
		if strings.Contains(r.body, `"state":"DELIVERED"`) {
			if !strings.Contains(r.body, `"attempts":2`) || !strings.Contains(r.body, `"lastStatus":200`) {
				t.Errorf("the delivery is %s", r.body)
			}
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the delivery is still %s", r.body)
		}
		pause(ctx)
	}
}

func TestPrivateAddressesAreRefusedAsWebhooks(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	r := s.call(t, http.MethodPost, "/v1/webhooks", `{"url":"https://127.0.0.1:9/hook"}`)
	if r.code != http.StatusBadRequest || !strings.Contains(r.body, "BAD_WEBHOOK_URL") {
		t.Errorf("%d %s", r.code, r.body)
	}
}

func TestASchedulesLifeOverREST(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		path := "/v1/" + s.session(t, "coder") + "/schedules"
		for _, c := range []struct {
			what, method, path, body string
			code                     int
			has                      []string
			lacks                    string
		}{
			{
				"create", http.MethodPost, path + "?schedule_id=c1", `{"cron":"30 6 * * 1-5","timeZone":"Europe/Berlin","text":"good morning"}`, http.StatusOK,
				[]string{`/schedules/c1"`, `"timeZone":"Europe/Berlin"`, `"nextTime":"`}, "paused",
			},
			{"create a second", http.MethodPost, path, `{"cron":"@every 90m","text":"still there?","onActive":"ON_ACTIVE_STEER"}`, http.StatusOK, []string{`"nextTime":"`}, "paused"},
			{"create a bad one", http.MethodPost, path, `{"cron":"@every 1s","text":"again"}`, http.StatusBadRequest, []string{"BAD_SCHEDULE"}, ""},
			{"create one in no zone", http.MethodPost, path, `{"cron":"@daily","timeZone":"Mars/Base","text":"hi"}`, http.StatusBadRequest, []string{"BAD_SCHEDULE", "Mars/Base"}, ""},
			{"list", http.MethodGet, path, "", http.StatusOK, []string{`"good morning"`, `"still there?"`}, "again"},
			{"pause", http.MethodPost, path + "/c1:pause", `{"paused":true}`, http.StatusOK, []string{`"paused":true`}, "nextTime"},
			{"get", http.MethodGet, path + "/c1", "", http.StatusOK, []string{`"paused":true`}, "nextTime"},
			{"resume", http.MethodPost, path + "/c1:pause", `{"paused":false}`, http.StatusOK, []string{`"nextTime":"`}, "paused"},
			{"delete", http.MethodDelete, path + "/c1", "", http.StatusOK, nil, ""},
			{"get what is deleted", http.MethodGet, path + "/c1", "", http.StatusNotFound, []string{"SCHEDULE_NOT_FOUND"}, ""},
			{"list what is left", http.MethodGet, path, "", http.StatusOK, []string{`"still there?"`}, "good morning"},
		} {
			r := s.call(t, c.method, c.path, c.body)
			if r.code != c.code || c.lacks != "" && strings.Contains(r.body, c.lacks) {
				t.Errorf("%s: %d %s", c.what, r.code, r.body)
			}
			for _, want := range c.has {
				if !strings.Contains(r.body, want) {
					t.Errorf("%s: %s is missing in %s", c.what, want, r.body)
				}
			}
		}
	})
}
