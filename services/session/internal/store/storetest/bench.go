package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Bench measures commits of some events for each of many sessions, which is
// what a committer does all day.
func Bench(b *testing.B, open func(b *testing.B) store.Store) {
	b.Helper()
	for _, size := range []struct{ sessions, events int }{{1, 1}, {1, 50}, {50, 4}} {
		b.Run(fmt.Sprintf("sessions=%d/events=%d", size.sessions, size.events), func(b *testing.B) {
			s := open(b)
			leases := benchLeases(b, s, size.sessions)
			last := int64(1)
			for b.Loop() {
				writes := make([]store.Write, 0, len(leases))
				for _, l := range leases {
					w := store.Write{Lease: l, LastSeq: last}
					for i := range int64(size.events) {
						w.Events = append(w.Events, delta(last+i+1, last+i+1, "some words of an answer, as a model streams them"))
					}
					writes = append(writes, w)
				}
				errs, err := s.Commit(b.Context(), writes)
				if err := errors.Join(append(errs, err)...); err != nil {
					b.Fatal(err)
				}
				last += int64(size.events)
			}
			b.ReportMetric(float64(b.N*size.sessions*size.events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func benchLeases(b *testing.B, s store.Store, n int) []store.Lease {
	b.Helper()
	for i := range n {
		k := key(fmt.Sprintf("s%d", i))
		if _, err := s.CreateSession(b.Context(), newSession(k)); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Submit(b.Context(), newTurn(k, "t")); err != nil {
			b.Fatal(err)
		}
	}
	leases, err := s.Claim(b.Context(), store.Claim{Replica: "one", TTL: time.Hour})
	if err != nil || len(leases) != n {
		b.Fatal(leases, err)
	}
	return leases
}

// BenchPath measures reading a conversation of 10,000 short messages whole.
func BenchPath(b *testing.B, open func(b *testing.B) store.Store) {
	b.Helper()
	s := open(b)
	lease := benchLeases(b, s, 1)[0]
	parent := ""
	for n := 0; n < 10_000; {
		w := store.Write{Lease: lease, LastSeq: 1}
		for range 500 {
			n++
			id := fmt.Sprintf("%026d", n)
			w.Messages = append(w.Messages, message(lease.Key, id, parent, "ten short words that stand for the text of messages"))
			parent = id
		}
		w.Head = &parent
		errs, err := s.Commit(b.Context(), []store.Write{w})
		if err := errors.Join(append(errs, err)...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if path, err := s.ListMessages(b.Context(), lease.Key, "", "", 0); err != nil || len(path) != 10_000 {
			b.Fatal(len(path), err)
		}
	}
}

// BenchRenew measures the renewal of the leases of a replica that holds many sessions.
func BenchRenew(b *testing.B, open func(b *testing.B) store.Store) {
	b.Helper()
	for _, n := range []int{64, 1000} {
		b.Run(fmt.Sprintf("leases=%d", n), func(b *testing.B) {
			s := open(b)
			leases := benchLeases(b, s, n)
			for b.Loop() {
				if lost, err := s.Renew(b.Context(), leases, time.Hour); err != nil || len(lost) > 0 {
					b.Fatal(lost, err)
				}
			}
		})
	}
}
