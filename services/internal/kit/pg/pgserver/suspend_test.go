package pgserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestASuspendedServerAnswersNobodyUntilItIsResumed(t *testing.T) {
	s := start(t, "")
	connect := func(within time.Duration) (*pgx.Conn, error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return pgx.Connect(ctx, s.URL())
	}
	open, err := connect(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close(context.WithoutCancel(t.Context())) }()
	if err := s.Suspend(); err != nil {
		t.Fatal(err)
	}
	if c, err := connect(200 * time.Millisecond); err == nil {
		_ = c.Close(t.Context())
		t.Error("a new connection was answered")
	}
	answered := make(chan error, 1)
	go func() {
		_, err := open.Exec(t.Context(), "select 1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("an open connection was answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	c, err := connect(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
