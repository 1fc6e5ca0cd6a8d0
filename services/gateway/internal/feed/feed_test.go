package feed

import (
	"sync"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestAnEventIsEncodedOnceInEachForm(t *testing.T) {
	e := &Entry{Event: &sessionv1.Event{FirstSeq: 3, Seq: 4}}
	var mu sync.Mutex
	made := map[string]int{}
	var followers sync.WaitGroup
	for _, form := range []string{"sse", "lines"} {
		for range 1000 {
			followers.Go(func() {
				data, err := e.Frame(form, func(_ *sessionv1.Event, json []byte) []byte {
					mu.Lock()
					defer mu.Unlock()
					made[form]++
					return append([]byte(form+" "), json...)
				})
				if want := form + ` {"firstSeq":"3","seq":"4"}`; err != nil || string(data) != want {
					t.Errorf("got %q, want %q, %v", data, want, err)
				}
			})
		}
	}
	followers.Wait()
	if made["sse"] != 1 || made["lines"] != 1 {
		t.Errorf("the event was encoded %v times", made)
	}
}

func TestAFeedKeepsABoundedEnd(t *testing.T) {
	f := &feed{readers: map[*Reader]struct{}{}}
	slow := &Reader{feed: f, notify: func() {}}
	woken := 0
	fast := &Reader{feed: f, notify: func() { woken++ }}
	for _, r := range []*Reader{slow, fast} {
		if err := f.add(r); err != nil {
			t.Fatal(err)
		}
	}
	const events = 3000
	for seq := range int64(events) {
		f.take(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: &sessionv1.Event{FirstSeq: seq + 1, Seq: seq + 1}}})
		got, quiet, err := fast.Next()
		if len(got) != 1 || got[0].Event.GetSeq() != seq+1 || quiet || err != nil || f.bytes > keep {
			t.Fatalf("after %d: %v, %v, %v, %d bytes", seq, got, quiet, err, f.bytes)
		}
	}
	if _, _, err := slow.Next(); err != ErrBehind { //nolint:errorlint // it is returned as it is
		t.Errorf("a slow follower gets %v", err)
	}
	if err := f.add(&Reader{feed: f, after: 1}); err != ErrBehind { //nolint:errorlint // as above
		t.Errorf("a follower that joins too far behind gets %v", err)
	}
	for beat := range 2 { // the first one tells only that the feed has caught up
		f.take(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Progress{Progress: &sessionv1.Progress{Seq: events}}})
		if got, quiet, err := fast.Next(); len(got) > 0 || quiet != (beat > 0) || err != nil {
			t.Errorf("beat %d of a feed without events: %v, %v, %v", beat, got, quiet, err)
		}
	}
	if f.bytes != 0 || f.entries != nil {
		t.Errorf("a quiet feed keeps %d bytes", f.bytes)
	}
	if woken != events+2 {
		t.Errorf("woken %d times", woken)
	}
}

// A reader reads the session once after it has joined, because a change before that was reported to no reader.
func TestAFeedTellsThatItsSessionHasChanged(t *testing.T) {
	f := &feed{readers: map[*Reader]struct{}{}}
	progress := func(changed bool) {
		f.take(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Progress{Progress: &sessionv1.Progress{SessionChanged: changed}}})
	}
	woken := 0
	early, late := &Reader{feed: f, notify: func() {}}, &Reader{feed: f, notify: func() { woken++ }}
	if err := f.add(early); err != nil {
		t.Fatal(err)
	}
	if early.Changed() {
		t.Error("a feed that has not caught up tells of a change")
	}
	for step, want := range []bool{true, false, true, true, false} {
		progress(step == 2 || step == 3)
		if got := early.Changed(); got != want {
			t.Errorf("step %d: %t", step, got)
		}
	}
	if err := f.add(late); err != nil {
		t.Fatal(err)
	}
	if woken != 1 || !late.Changed() || late.Changed() {
		t.Errorf("a reader that joins is woken %d times", woken)
	}
}
