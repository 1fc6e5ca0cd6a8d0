package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestBodyIsTheTurnAsREST(t *testing.T) {
	end := time.Date(2026, 1, 5, 6, 7, 8, 0, time.UTC)
	b, err := newBody(&sessionv1.Turn{
		Name: "sessions/s/turns/t", State: sessionv1.TurnState_TURN_STATE_COMPLETE, FinalText: "done <b>", EndTime: timestamppb.New(end),
		Usage: &sessionv1.Usage{InputTokens: 7}, OutputJson: `{"a":1}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "turn.finished", "timestamp": "2026-01-05T06:07:08Z",
		"data": map[string]any{
			"name": "sessions/s/turns/t", "state": "TURN_STATE_COMPLETE", "finalText": "done <b>", "endTime": "2026-01-05T06:07:08Z",
			"usage": map[string]any{"inputTokens": "7"}, "outputJson": `{"a":1}`,
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestABodyIsOneLineForEveryReader(t *testing.T) {
	const splitters = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"
	body, err := newBody(&sessionv1.Turn{Name: "sessions/s/turns/t", FinalText: splitters})
	if err != nil || bytes.ContainsAny(body, splitters) {
		t.Errorf("%q, %v", body, err)
	}
	var got struct{ Data struct{ FinalText string } }
	if err := json.Unmarshal(body, &got); err != nil || got.Data.FinalText != splitters {
		t.Errorf("%q, %v", got.Data.FinalText, err)
	}
}

func TestSend(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status int
		wait   time.Duration
		says   string // empty: delivered
	}{
		"200 is delivered": {func(http.ResponseWriter, *http.Request) {}, 200, 0, ""},
		"204 is delivered": {status(204, nil), 204, 0, ""},
		"a redirection is not followed": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/hook" {
				t.Error("it was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 307, 0, "redirection"},
		"400 is not":                     {status(400, nil), 400, 0, "400 Bad Request"},
		"410 is not":                     {status(410, nil), 410, 0, "410"},
		"429 may say when":               {status(429, map[string]string{"Retry-After": "120"}), 429, 2 * time.Minute, "429"},
		"503 may say when":               {status(503, map[string]string{"Retry-After": "60"}), 503, time.Minute, "503"},
		"others cannot":                  {status(500, map[string]string{"Retry-After": "60"}), 500, 0, "500"},
		"what it says may make no sense": {status(503, map[string]string{"Retry-After": "-5"}), 503, 0, "503"},
		"an answer without an end is cut": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}, 200, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			s := newSender(Config{AllowHTTP: true, AllowPrivate: true}, "test")
			defer s.client.CloseIdleConnections()
			a := s.send(context.Background(), message{id: "m", url: server.URL + "/hook?token=hush", secrets: [][]byte{[]byte("k")}, body: []byte("{}")})
			if a.status != c.status || a.wait != c.wait {
				t.Errorf("answer %+v", a)
			}
			if (a.err == nil) != (c.says == "") || a.err != nil && !strings.Contains(a.err.Error(), c.says) {
				t.Errorf("error %v", a.err)
			}
		})
	}
}

func status(code int, header map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(code)
	}
}

func TestSignatureVerifiesWithTheLibrary(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	verified := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		wh, err := standardwebhooks.NewWebhookRaw(secret)
		if err == nil {
			err = wh.Verify(body, r.Header)
		}
		verified <- err
	}))
	defer server.Close()
	s := newSender(Config{AllowHTTP: true, AllowPrivate: true}, "test")
	defer s.client.CloseIdleConnections()
	if a := s.send(context.Background(), message{id: "w_t", url: server.URL, secrets: [][]byte{secret}, body: []byte(`{"a":1}`)}); a.err != nil {
		t.Fatal(a.err)
	}
	if err := <-verified; err != nil {
		t.Error(err)
	}
}

// The proxy of the environment would resolve the name in our place.
func TestTheEnvironmentsProxyIsNotUsed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	defer proxy.Close()
	s := newSender(Config{AllowHTTP: true}, "test")
	if s.client.Transport.(*http.Transport).Proxy != nil { //nolint:forcetypeassert // it is ours
		t.Error("a proxy is set")
	}
}

func TestAnUnreachableHostTellsNothingOfTheAddress(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL + "/path/hush?token=hush"
	server.Close()
	s := newSender(Config{AllowHTTP: true, AllowPrivate: true}, "test")
	a := s.send(context.Background(), message{id: "m", url: url, secrets: [][]byte{[]byte("k")}})
	if a.err == nil || a.status != 0 || strings.Contains(a.err.Error(), "hush") || !strings.Contains(a.err.Error(), "refused") {
		t.Errorf("answer %+v", a)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "90": 90 * time.Second, "soon": 0, "99999999999999999999": 0,
		"Mon, 05 Jan 2026 06:05:00 GMT": 5 * time.Minute, "Mon, 05 Jan 2026 05:00:00 GMT": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestPausesGrowAndEndAtFourHours(t *testing.T) {
	for i, mean := range []time.Duration{5 * time.Second, 20 * time.Second, 80 * time.Second, 320 * time.Second, 1280 * time.Second, 5120 * time.Second, 4 * time.Hour, 4 * time.Hour} {
		got := Defaults().pause(int32(i + 1))
		if got < mean*79/100 || got > mean*121/100 {
			t.Errorf("pause %d is %v, not about %v", i+1, got, mean)
		}
	}
	if got := Defaults().pause(1 << 30); got > 5*time.Hour {
		t.Errorf("a late pause is %v", got)
	}
}
