package hub

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func batch(seq int64) []*sessionv1.Event { return []*sessionv1.Event{{FirstSeq: seq, Seq: seq}} }

// room is enough for some ten small batches.
const room = 10 * (overhead + 10)

func seqs(batches [][]*sessionv1.Event) []int64 {
	var all []int64
	for _, b := range batches {
		for _, e := range b {
			all = append(all, e.Seq)
		}
	}
	return all
}

func TestFollowersOfOtherSessionsAndTenantsHearNothing(t *testing.T) {
	h := New(room)
	mine := h.Follow(store.Key{Tenant: "a", Session: "s"})
	other := h.Follow(store.Key{Tenant: "b", Session: "s"})
	defer mine.Close()
	defer other.Close()
	for i := range 3 {
		h.Publish(store.Key{Tenant: "a", Session: "s"}, batch(int64(i+1)))
	}
	<-mine.C
	if got, wake, _ := mine.Take(); !slices.Equal(seqs(got), []int64{1, 2, 3}) || wake {
		t.Errorf("got %v, wake %v", got, wake)
	}
	if len(other.C) != 0 {
		t.Error("a follower in another tenant heard the event")
	}
	if got, wake, _ := mine.Take(); len(got) != 0 || wake || len(mine.C) != 0 {
		t.Errorf("there is something left: %v, %v", got, wake)
	}
}

func TestASlowFollowerIsSentToTheStoreForWhatDidNotFit(t *testing.T) {
	large := []*sessionv1.Event{{FirstSeq: 1, Seq: 1, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: strings.Repeat("x", room)}}}}
	for _, tc := range []struct {
		name    string
		publish [][]*sessionv1.Event
	}{
		{"many small batches", slices.Repeat([][]*sessionv1.Event{batch(1)}, 1000)},
		{"a batch that is larger than all that may wait", [][]*sessionv1.Event{large}},
		{"a large batch behind a small one", [][]*sessionv1.Event{batch(1), large}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := New(room)
			k := store.Key{Tenant: "a", Session: "s"}
			slow, fast := h.Follow(k), h.Follow(k)
			defer slow.Close()
			defer fast.Close()
			for _, b := range tc.publish {
				h.Publish(k, b)
				if proto.Size(b[0]) > room {
					fast.Take()
				} else if got, wake, _ := fast.Take(); len(got) != 1 || wake {
					t.Fatalf("a follower that keeps up got %d batches, wake %v", len(got), wake)
				}
				if slow.bytes > room || overhead*len(slow.batches) > room {
					t.Fatalf("%d bytes wait in %d batches", slow.bytes, len(slow.batches))
				}
			}
			if _, wake, _ := slow.Take(); !wake {
				t.Error("a follower that lost batches was not told to read the store")
			}
			h.Publish(k, batch(2))
			if got, wake, _ := slow.Take(); len(got) != 1 || wake {
				t.Errorf("once it has caught up it got %d batches, wake %v", len(got), wake)
			}
		})
	}
}

func TestAClosedFollowerIsForgotten(t *testing.T) {
	h := New(room)
	k := store.Key{Tenant: "a", Session: "s"}
	f := h.Follow(k)
	if !h.Following(k) {
		t.Error("there is no follower")
	}
	f.Close()
	if h.Following(k) || len(h.followers) != 0 {
		t.Error("a closed follower is still there")
	}
}

func TestAChangeOfASessionIsToldBesideItsEvents(t *testing.T) {
	h := New(1 << 20)
	k := store.Key{Tenant: "t", Session: "s"}
	f := h.Follow(k)
	defer f.Close()
	h.Changed(store.Key{Tenant: "t", Session: "other"})
	if len(f.C) != 0 {
		t.Error("a change of another session wakes the follower")
	}
	h.Changed(k)
	h.Changed(k)
	<-f.C
	if batches, wake, changed := f.Take(); len(batches) > 0 || wake || !changed || len(f.C) > 0 {
		t.Errorf("%v, %t, %t", batches, wake, changed)
	}
	if _, _, changed := f.Take(); changed {
		t.Error("a change is told twice")
	}
}
