package faulty_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var migrated = sqlitetest.NewTemplate(sqlite.Migrations())

func open(t *testing.T) *faulty.Store {
	t.Helper()
	file := filepath.Join(t.TempDir(), "session.db")
	migrated.Copy(t, file)
	inner, err := sqlite.Open(t.Context(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := faulty.New(inner)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestEveryMethodFailsUnderItsName calls every method of the interface, also
// those that it will get.
func TestEveryMethodFailsUnderItsName(t *testing.T) {
	s := open(t)
	methods := reflect.TypeFor[store.Store]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		if name == "Close" {
			continue
		}
		s.Fail(faulty.Method(name), 1, faulty.Before, nil)
		method := reflect.ValueOf(s).MethodByName(name)
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for j := 1; j < method.Type().NumIn(); j++ {
			args = append(args, reflect.Zero(method.Type().In(j)))
		}
		call := method.Call
		if method.Type().IsVariadic() {
			call = method.CallSlice
		}
		results := call(args)
		if err, _ := results[len(results)-1].Interface().(error); !errors.Is(err, faulty.Err) {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.Calls(faulty.Method(name)); n != 1 {
			t.Errorf("%s was called %d times", name, n)
		}
	}
}

var k = store.Key{Tenant: "acme", Session: "s"}

func create(t *testing.T, s store.Store, id string) error {
	t.Helper()
	_, err := s.CreateSession(t.Context(), store.NewSession{Key: store.Key{Tenant: k.Tenant, Session: id}, Event: &sessionv1.Event{}})
	return err
}

func exists(t *testing.T, s store.Store, id string) bool {
	t.Helper()
	_, err := s.GetSession(t.Context(), store.Key{Tenant: k.Tenant, Session: id})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestACallFailsBeforeOrAfterItsWork(t *testing.T) {
	other := errors.New("another error")
	for _, c := range []struct {
		name   string
		when   faulty.When
		err    error
		want   error
		exists bool
	}{
		{"before, nothing is written", faulty.Before, nil, store.ErrUnavailable, false},
		{"after, all is written", faulty.After, nil, store.ErrUnavailable, true},
		{"with the test's own error", faulty.After, other, other, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			if err := create(t, s, "zero"); err != nil {
				t.Fatal(err)
			}
			s.Fail(faulty.CreateSession, 2, c.when, c.err)
			if err := create(t, s, "one"); err != nil {
				t.Errorf("the first call: %v", err)
			}
			if err := create(t, s, "two"); !errors.Is(err, c.want) {
				t.Errorf("the second call: %v", err)
			}
			if exists(t, s, "two") != c.exists {
				t.Errorf("written: %t", !c.exists)
			}
			if err := create(t, s, "three"); err != nil {
				t.Errorf("the third call: %v", err)
			}
			if n := s.Calls(faulty.CreateSession); n != 4 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

func TestWhatIsDownFailsUntilItIsUp(t *testing.T) {
	s := open(t)
	s.Down()
	for range 2 {
		if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
	}
	s.Up()
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// A holder is paused just before its commit; when it wakes, its session has gone
// to another one, and its write is refused.
func TestAPausedHolderCannotWrite(t *testing.T) {
	s := open(t)
	if err := create(t, s, k.Session); err != nil {
		t.Fatal(err)
	}
	_, err := s.Submit(t.Context(), store.Submit{
		Key: k, Command: store.Command{Kind: store.CommandTurn},
		Turn: &store.TurnRow{ID: "t", Turn: &sessionv1.Turn{Name: "sessions/s/turns/t"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Claim(t.Context(), store.Claim{Replica: "one", TTL: time.Millisecond})
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	pause := s.Hold(faulty.Commit, 1, faulty.Before)
	refused := make(chan error, 1)
	go func() {
		errs, err := s.Commit(t.Context(), []store.Write{{
			Lease: first[0], LastSeq: 1, Events: []*sessionv1.Event{{FirstSeq: 2, Seq: 2}}, Consume: []int64{1},
		}})
		refused <- errors.Join(append(errs, err)...)
	}()
	<-pause.Reached
	var second []store.Lease
	for len(second) == 0 { // until the first lease ends
		if second, err = s.Claim(t.Context(), store.Claim{Replica: "two", TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	pause.Resume()
	if err := <-refused; !errors.Is(err, store.ErrStaleEpoch) {
		t.Errorf("the paused holder's commit: %v", err)
	}
	snap, err := s.Load(t.Context(), second[0])
	if err != nil || snap.Session.LastSeq != 1 || len(snap.Commands) != 1 {
		t.Errorf("snapshot %+v, %v", snap, err)
	}
}

func TestAHeldCallEndsWithItsContext(t *testing.T) {
	s := open(t)
	pause := s.Hold(faulty.Ping, 1, faulty.After)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Ping(ctx) }()
	<-pause.Reached
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	pause.Resume()
}
