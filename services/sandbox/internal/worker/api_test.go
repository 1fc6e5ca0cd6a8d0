package worker

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestARedirectDoesNotGetTheKey(t *testing.T) {
	asked := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	defer other.Close()
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/v1", code))
		a := &api{http: newClient(), base: server.URL + "/v1", token: "secret"}
		_, err := a.poll(t.Context(), "env_1")
		var refused *Error
		if !errors.As(err, &refused) || refused.Status != code || transient(err) || !strings.Contains(err.Error(), other.URL) {
			t.Errorf("%d: %v; it must name the other address, and not be tried again", code, err)
		}
		server.Close()
	}
	if len(asked) > 0 {
		t.Errorf("the other address got %q", <-asked)
	}
}

func TestALineWithoutEndTakesBoundedMemory(t *testing.T) {
	const most = 4 * maxEvent
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/stream") {
			_, _ = w.Write([]byte(`{"data": []}`))
			return
		}
		piece := []byte(strings.Repeat("a", 1<<20))
		for ; sent < most; sent += len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	a := &api{http: newClient(), base: server.URL + "/v1"}
	out := make(chan []event, 1)
	err := a.stream(t.Context(), &work{}, out)
	server.Close() // it waits for the handler
	if err == nil || sent >= most {
		t.Errorf("the worker read %d bytes of a line: %v", sent, err)
	}
}
