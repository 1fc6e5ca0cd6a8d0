package box

import (
	"sync"
	"testing"
)

// What a counter hands over it goes on reading, while changes are added.
func TestATallySharesNothingWithWhoCounted(t *testing.T) {
	var known tally
	u := Usage{Bytes: 1, Inodes: 1}
	known.set(&u)
	var adding sync.WaitGroup
	adding.Go(func() { known.add(10, 1) })
	if u.Bytes != 1 || u.Inodes != 1 {
		t.Errorf("the counter's own figures became %+v", u)
	}
	adding.Wait()
	got, err := known.get(func() (Usage, error) { t.Error("counted again"); return Usage{}, nil })
	if err != nil || got.Bytes != 11 || got.Inodes != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	known.set(nil)
	if got, err := known.get(func() (Usage, error) { return Usage{Bytes: 5}, nil }); err != nil || got.Bytes != 5 {
		t.Errorf("after forgetting: %+v, %v", got, err)
	}
}
