package egress

import (
	"fmt"
	"net/http"
	"testing"
)

// Some frameworks tell a client where it is by a header instead of Host: the proxy has
// decided by the address alone.
func TestHeadersThatNameAnotherHostDoNotLeave(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("api.example.com", a, b) })
	naming := []string{"X-Forwarded-Host", "X_Forwarded_Host", "Forwarded", "X-Host", "X-Original-Host", "X-HTTP-Host-Override", "X-Forwarded-Server"}
	var header []string
	for _, name := range naming {
		header = append(header, name, "evil.org")
	}
	if status, body := w.ask(w.client(w.roots), http.MethodGet, fmt.Sprintf("http://api.example.com:%d/x", port(w.web)), header...); status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	for name, values := range w.seen()[0].Header {
		for _, v := range values {
			if v == "evil.org" {
				t.Errorf("%s arrives", name)
			}
		}
	}
}

// The answer to TRACE is the request, with what was put into it.
func TestNoHeaderAsksForTheRequestAsTheAnswer(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule { return named("api.example.com", a, b) })
	for value, leaves := range map[string]bool{"trace": false, "GET, TRACE": false, "TRACK": false, "GET": true} {
		n := len(w.seen())
		url := fmt.Sprintf("http://api.example.com:%d/x", port(w.web))
		if status, body := w.ask(w.client(w.roots), http.MethodPost, url, "X-HTTP-Method-Override", value); status != 200 {
			t.Fatalf("got %d %s", status, body)
		}
		if got := w.seen()[n].Header.Get("X-HTTP-Method-Override"); (got != "") != leaves {
			t.Errorf("%s arrives as %q", value, got)
		}
	}
}
