package modelproxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestASilentStreamIsPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		p := newPulse(w, []byte(": ping\n\n"), func() { w.WriteHeader(http.StatusOK); _, _ = w.WriteString("start\n\n") })
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() } //nolint:forbidigo // the bubble's clock
		want := func(s string) {
			t.Helper()
			if got := w.Body.String(); got != s {
				t.Errorf("the client has %q, want %q", got, s)
			}
		}
		wait(9 * time.Second)
		want("")
		if p.began() {
			t.Error("the answer has begun")
		}
		wait(2 * time.Second) // a ping begins the answer
		want("start\n\n: ping\n\n")
		if err := p.write([]byte("data: a\n\n")); err != nil {
			t.Fatal(err)
		}
		wait(9 * time.Second)
		if err := p.write([]byte("data: b")); err != nil {
			t.Fatal(err)
		}
		wait(time.Minute) // no ping within an event
		want("start\n\n: ping\n\ndata: a\n\ndata: b")
		if err := p.write([]byte("\n\n")); err != nil {
			t.Fatal(err)
		}
		wait(11 * time.Second)
		p.end()
		wait(time.Minute)
		want("start\n\n: ping\n\ndata: a\n\ndata: b\n\n: ping\n\n")
	})
}

func TestAnAnswerThatIsNotStreamedIsNotPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		p := newPulse(w, nil, func() { w.WriteHeader(http.StatusOK) })
		defer p.end()
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		if p.began() || w.Body.Len() > 0 {
			t.Errorf("the client has %q", w.Body)
		}
	})
}
