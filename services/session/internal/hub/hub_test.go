package hub

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func batch(seq int64) []*sessionv1.Event { return []*sessionv1.Event{{FirstSeq: seq, Seq: seq}} }

func TestFollowersOfOtherSessionsAndTenantsHearNothing(t *testing.T) {
	h := New()
	mine := h.Follow(store.Key{Tenant: "a", Session: "s"})
	other := h.Follow(store.Key{Tenant: "b", Session: "s"})
	defer mine.Close()
	defer other.Close()
	h.Publish(store.Key{Tenant: "a", Session: "s"}, batch(1))
	if got := <-mine.C; got[0].Seq != 1 {
		t.Errorf("got %v", got)
	}
	if len(other.C) != 0 {
		t.Error("a follower in another tenant heard the event")
	}
}

func TestASlowFollowerGetsAWakeInsteadOfWhatDidNotFit(t *testing.T) {
	h := New()
	k := store.Key{Tenant: "a", Session: "s"}
	f := h.Follow(k)
	defer f.Close()
	for i := range 10 * buffered {
		h.Publish(k, batch(int64(i+1)))
	}
	woken := false
	for range len(f.C) {
		if b := <-f.C; b == nil {
			woken = true
		}
	}
	if !woken {
		t.Error("a follower that lost batches was not told to read the store")
	}
}

func TestAClosedFollowerIsForgotten(t *testing.T) {
	h := New()
	k := store.Key{Tenant: "a", Session: "s"}
	f := h.Follow(k)
	if !h.Following(k) {
		t.Error("nobody follows")
	}
	f.Close()
	if h.Following(k) || len(h.followers) != 0 {
		t.Error("a closed follower is still there")
	}
}
