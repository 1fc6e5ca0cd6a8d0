package limit

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestClientsAreAddresses(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:1234":              "192.0.2.7",
		"[::ffff:192.0.2.7]:1":        "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:1":    "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:1":    "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":            "fe80::/64",
		"192.0.2.7":                   "192.0.2.7",
		"2001:db8:1:2:3:4:5:6":        "2001:db8:1:2::/64",
		"@":                           "@",
		"":                            "",
		"not an address at all:12345": "not an address at all:12345",
	} {
		if got := Of(&http.Request{RemoteAddr: remote}); got != (Client{Address: want}) {
			t.Errorf("%q: %+v, want %q", remote, got, want)
		}
	}
}

func TestStreamsAreCountedByClientAndInTotal(t *testing.T) {
	s := NewStreams(Bounds{Total: 5, Address: 3, User: 2})
	var release []func()
	for _, c := range []struct {
		address, user string
		code          codes.Code
		key           string
	}{
		{"a", "t/ann", codes.OK, ""},
		{"a", "t/ann", codes.OK, ""},
		{"a", "t/ann", codes.ResourceExhausted, "gateway.max-streams-per-user"},
		{"b", "t/ann", codes.ResourceExhausted, "gateway.max-streams-per-user"},
		{"a", "u/ann", codes.OK, ""}, // the same name in another tenant
		{"a", "t/bob", codes.ResourceExhausted, "gateway.max-streams-per-client"},
		{"b", "t/bob", codes.OK, ""},
		{"", "", codes.OK, ""}, // a call whose caller is not known
		{"b", "t/eve", codes.Unavailable, "gateway.max-streams)"},
	} {
		r, err := s.Acquire(Client{c.address, c.user})
		if status.Code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.key) {
			t.Fatalf("%s of %s: %v, want %s", c.user, c.address, err, c.code)
		}
		if r != nil {
			release = append(release, r)
		}
	}
	for _, r := range release {
		r()
	}
	if s.open != 0 || len(s.by) != 0 {
		t.Errorf("after all are released: %d, %v", s.open, s.by)
	}
}

func TestNoLimitIsNoLimit(t *testing.T) {
	s := NewStreams(Bounds{})
	for range 1000 {
		if _, err := s.Acquire(Client{"a", "t/ann"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := NewRate(0, 0).Allow(Client{Address: "a"}); err != nil {
		t.Error(err)
	}
}

func TestTheRateIsEachClientsOwn(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewRate(2, 3)
	r.now = func() time.Time { return now }
	for i := range 3 {
		if err := r.Allow(Client{Address: "a"}); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
	err := r.Allow(Client{Address: "a"})
	info, _ := apierr.Detail[*errdetails.RetryInfo](err)
	if status.Code(err) != codes.ResourceExhausted || info.GetRetryDelay().AsDuration() != 500*time.Millisecond {
		t.Errorf("one too many: %v", err)
	}
	if err := r.Allow(Client{Address: "b"}); err != nil {
		t.Errorf("another client: %v", err)
	}
	now = now.Add(500 * time.Millisecond)
	if err := r.Allow(Client{Address: "a"}); err != nil {
		t.Errorf("after the delay: %v", err)
	}
}

func TestTheMemoryForClientsIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewRate(1, 1)
	r.now = func() time.Time { return now }
	for i := range maxClients {
		if err := r.Allow(Client{Address: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Allow(Client{Address: "one more"}); err != nil {
		t.Errorf("the first that is too many: %v", err)
	}
	if err := r.Allow(Client{Address: "and another"}); err == nil {
		t.Error("those that are too many do not share one allowance")
	}
	if len(r.clients) != maxClients {
		t.Errorf("%d clients are kept", len(r.clients))
	}
	now = now.Add(time.Minute)
	if err := r.Allow(Client{Address: "later"}); err != nil || len(r.clients) != 1 {
		t.Errorf("when all are quiet: %v, %d clients are kept", err, len(r.clients))
	}
}
