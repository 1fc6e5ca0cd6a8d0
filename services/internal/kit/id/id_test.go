package id_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/id"
)

func TestNewIsOrdered(t *testing.T) {
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = id.New()
		if len(ids[i]) != 26 || strings.Trim(ids[i], "0123456789abcdefghijklmnopqrstuv") != "" {
			t.Fatalf("New() = %q is no id", ids[i])
		}
	}
	if !slices.IsSorted(ids) {
		t.Error("ids of one process are not in the order of their making")
	}
	if n := len(slices.Compact(ids)); n != 10_000 {
		t.Errorf("%d different ids out of 10000", n)
	}
}

func TestNewConcurrently(t *testing.T) {
	var (
		mu   sync.Mutex
		seen = map[string]bool{}
		wg   sync.WaitGroup
	)
	for range 8 {
		wg.Go(func() {
			for range 500 {
				s := id.New()
				mu.Lock()
				seen[s] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 8*500 {
		t.Errorf("%d different ids out of %d", len(seen), 8*500)
	}
}
