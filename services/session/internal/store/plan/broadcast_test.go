package plan

import (
	"strconv"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wake(n int) store.Wake {
	return store.Wake{Key: store.Key{Tenant: "t", Session: strconv.Itoa(n)}, Kind: store.WakeEvents}
}

func TestAListenerThatIsTooSlowLosesItsQueueAndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBroadcast()
		defer b.Close()
		c, err := b.Listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Send(wake(0))
		synctest.Wait() // the first wake has left the queue: it waits for a receiver
		for n := range 3 * maxQueuedWakes {
			b.Send(wake(n + 1))
		}
		for _, want := range []store.Wake{wake(0), {Kind: store.WakeLost}} {
			if got := <-c; got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		b.Send(wake(-1))
		if w := <-c; w != wake(-1) {
			t.Errorf("after the loss: %+v", w)
		}
	})
}

func TestWakesThatWaitAreSentOnceAndInOrder(t *testing.T) {
	b := NewBroadcast()
	defer b.Close()
	c, err := b.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// One batch: a reader cannot take a part of it before the rest is there.
	b.Send(wake(1), wake(2), wake(1), wake(2), wake(3))
	for _, want := range []store.Wake{wake(1), wake(2), wake(3)} {
		if got := <-c; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestClosingTwiceIsHarmless(t *testing.T) {
	b := NewBroadcast()
	c, err := b.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	b.Close()
	b.Send(wake(1))
	if _, ok := <-c; ok {
		t.Error("a wake after the end")
	}
}
