package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

func message(bytes int, end bool) *sandboxv1.ExecStdin {
	return &sandboxv1.ExecStdin{Data: make([]byte, bytes), Close: end}
}

func TestInputKeepsItsOrderToTheEnd(t *testing.T) {
	in := newInput()
	for i, m := range []*sandboxv1.ExecStdin{message(1, false), message(2, false), message(0, true)} {
		if err := in.put(t.Context(), m); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	in.end()
	for _, want := range []int{1, 2, 0} {
		m, err := in.take(t.Context())
		if err != nil || len(m.GetData()) != want || m.GetClose() != (want == 0) {
			t.Errorf("%d bytes, closed %v, %v; want %d", len(m.GetData()), m.GetClose(), err, want)
		}
	}
	if m, err := in.take(t.Context()); m != nil || err != nil {
		t.Errorf("after the end: %v, %v", m, err)
	}
}

func TestOnlySoMuchInputWaits(t *testing.T) {
	for name, size := range map[string]int{"in large messages": 1 << 20, "in messages without a byte": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, put := newInput(), 0
				ctx, cancel := context.WithCancelCause(t.Context())
				ended, gone := make(chan error), errors.New("gone")
				go func() {
					for {
						if err := in.put(ctx, message(size, false)); err != nil {
							ended <- err
							return
						}
						put++
					}
				}()
				synctest.Wait()
				full := put
				if kept := full * (size + inputCost); full == 0 || kept > mostInput || kept+size+inputCost <= mostInput {
					t.Errorf("%d messages wait", full)
				}
				if _, err := in.take(ctx); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if put != full+1 {
					t.Errorf("%d messages after one was taken, %d before", put, full)
				}
				cancel(gone)
				if err := <-ended; !errors.Is(err, gone) {
					t.Errorf("who waits for room is told %v", err)
				}
			})
		})
	}
}
