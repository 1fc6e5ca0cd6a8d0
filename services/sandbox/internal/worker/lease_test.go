package worker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answers is a server that answers one heartbeat after the other. An empty answer is one that does not arrive.
type answers struct {
	left []string // a status and a body
	seen []string // expected heartbeats
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.seen = append(a.seen, r.URL.Query().Get("expected_last_heartbeat"))
	next := a.left[0]
	if len(a.left) > 1 {
		a.left = a.left[1:]
	}
	code, body, ok := strings.Cut(next, " ")
	if !ok {
		return nil, errors.New("connection refused")
	}
	status := map[string]int{"200": 200, "404": 404, "412": 412, "500": 500}[code]
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

const beaten = `200 {"state":"active","lease_extended":true,"ttl_seconds":30,"last_heartbeat":"b1"}`

func TestALease(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		want    error
		seen    string
		after   time.Duration
	}{
		"is lost when another worker has it":         {[]string{beaten, `412 {"error":{"details":{"error_code":"heartbeat_precondition_failed"}}}`}, errLeaseLost, "NO_HEARTBEAT b1", 15 * time.Second},
		"is lost when the server does not extend it": {[]string{beaten, `200 {"state":"queued","lease_extended":false}`}, errLeaseLost, "NO_HEARTBEAT b1", 15 * time.Second},
		"is lost with the item":                      {[]string{beaten, `404 {}`}, errLeaseLost, "NO_HEARTBEAT b1", 15 * time.Second},
		"ends when the server stops the item":        {[]string{`200 {"state":"stopping","lease_extended":true}`}, errStopped, "NO_HEARTBEAT", 0},
		"outlives a short failure":                   {[]string{beaten, "", `500 {}`, `200 {"state":"stopped"}`}, errStopped, "NO_HEARTBEAT b1 b1 b1", 17 * time.Second},
		"is lost when the server stays away":         {[]string{beaten, ""}, errLeaseLost, "", 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began := &answers{left: c.answers}, time.Now()
				a := &api{http: &http.Client{Transport: s}, base: "http://server/v1", token: "secret"}
				held := 0
				err := a.keep(t.Context(), &work{ID: "w", Environment: "e"}, 30*time.Second, func() { held++ })
				if !errors.Is(err, c.want) || time.Since(began) != c.after || c.seen != "" && strings.Join(s.seen, " ") != c.seen {
					t.Errorf("it ends after %v with %v; the heartbeats expected %q", time.Since(began), err, s.seen)
				}
				if strings.HasPrefix(c.answers[0], beaten) != (held == 1) {
					t.Errorf("it was held %d times", held)
				}
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("the error has the token: %v", err)
				}
			})
		})
	}
}

func TestARequestIsRepeatedWhileThatHelps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &answers{left: []string{"", "500 {}", "200 {}"}}
		a := &api{http: &http.Client{Transport: s}, base: "http://server/v1"}
		if err := a.call(t.Context(), http.MethodPost, "/x", nil, nil); err != nil || len(s.seen) != 3 {
			t.Errorf("after %d tries: %v", len(s.seen), err)
		}
		s = &answers{left: []string{`404 {"error":{"message":"no such thing"}}`}}
		a.http = &http.Client{Transport: s}
		var refused *Error
		if err := a.call(t.Context(), http.MethodPost, "/x", nil, nil); !errors.As(err, &refused) || refused.Status != 404 || !strings.Contains(err.Error(), "no such thing") || len(s.seen) != 1 {
			t.Errorf("after %d tries: %v", len(s.seen), err)
		}
		s = &answers{left: []string{""}}
		a.http = &http.Client{Transport: s}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := a.call(ctx, http.MethodPost, "/x", nil, nil); err == nil {
			t.Error("a server that is away answers")
		}
	})
}
