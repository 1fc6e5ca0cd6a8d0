package backend

import (
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wake(n int) store.Wake {
	return store.Wake{Key: store.Key{Tenant: "t", Session: strconv.Itoa(n)}, Kind: store.WakeEvents}
}

func TestAListenerThatIsTooSlowLosesItsQueueAndIsTold(t *testing.T) {
	b := NewBroadcast()
	defer b.Close()
	c, err := b.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 * maxQueuedWakes {
		b.Send(wake(n))
	}
	// At most one wake was on its way to the channel before the queue was full.
	var got []store.Wake
	for w := range c {
		got = append(got, w)
		if w.Kind == store.WakeLost || len(got) > 1 {
			break
		}
	}
	if last := got[len(got)-1]; last != (store.Wake{Kind: store.WakeLost}) {
		t.Errorf("got %+v", got)
	}
	b.Send(wake(-1))
	if w := <-c; w != wake(-1) {
		t.Errorf("after the loss: %+v", w)
	}
}

func TestWakesThatWaitAreSentOnceAndInOrder(t *testing.T) {
	b := NewBroadcast()
	defer b.Close()
	c, err := b.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// One batch: nobody can take some of it before the rest is there.
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
