package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
)

// live is a log whose second event comes once its follower has caught up.
type live struct{ log }

func (*live) StreamEvents(r *sessionv1.StreamEventsRequest, st grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]) error {
	e := text(r.GetAfterSeq()+1, r.GetAfterSeq()+1, "a")
	if err := st.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: e}}); err != nil {
		return err
	}
	err := st.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Progress{Progress: &sessionv1.Progress{Seq: e.GetSeq()}}})
	<-st.Context().Done()
	return err
}

// broken panics at its second event.
type broken struct{ plain }

func (b broken) Event(dst []byte, e *sessionv1.Event) ([]byte, bool, error) {
	if e.GetSeq() > 1 {
		panic("a fault of the encoder")
	}
	return b.plain.Event(dst, e)
}

// The feed ends with its last reader, or the server of serve would wait for it for ever.
func TestAPanicInAFeedCutsTheAnswerOffAndLeavesTheFeed(t *testing.T) {
	s := serve(t, &live{}, Config{})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, held := idle.Begin(r)
		defer held.Return()
		f := s.Follow(r.Context(), "sessions/s", 0) //nolint:contextcheck // it is made of the request
		defer f.Close()
		_ = s.Send(w, r, "test", f, broken{})
	}))
	defer h.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if !resp.Close {
		t.Errorf("the headers are %v, but the connection may end with the answer", resp.Header)
	}
	if body, err := io.ReadAll(resp.Body); err == nil || string(body) != "data: a\n\n" {
		t.Errorf("got %q, %v; an answer that is not complete must not end well", body, err)
	}
}
