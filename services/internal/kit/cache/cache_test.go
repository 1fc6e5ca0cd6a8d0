package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/cache"
)

func TestAValueExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[string, int](10)
		c.Put("a", 1, time.Now().Add(time.Second))
		if v, ok := c.Get("a"); !ok || v != 1 {
			t.Errorf("got %d, %v", v, ok)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		if v, ok := c.Get("a"); ok {
			t.Errorf("an expired value is %d", v)
		}
	})
}

func TestAFullCacheForgetsExpiredValuesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[int, int](4)
		for i := range 3 {
			c.Put(i, i, time.Now().Add(time.Second))
		}
		c.Put(3, 3, time.Now().Add(time.Hour))
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		c.Put(4, 4, time.Now().Add(time.Hour))
		for _, k := range []int{3, 4} {
			if _, ok := c.Get(k); !ok {
				t.Errorf("%d is forgotten", k)
			}
		}
	})
}

func TestACacheStaysBounded(t *testing.T) {
	const most = 64
	c := cache.New[int, int](most)
	for i := range 10 * most {
		c.Put(i, i, time.Now().Add(time.Hour))
	}
	kept := 0
	for i := range 10 * most {
		if _, ok := c.Get(i); ok {
			kept++
		}
	}
	if _, ok := c.Get(10*most - 1); !ok || kept > most || kept < most/2 {
		t.Errorf("%d values of %d are kept, the last one %v", kept, most, ok)
	}
	c.Forget(10*most - 1)
	if _, ok := c.Get(10*most - 1); ok {
		t.Error("a removed value is still there")
	}
}
