package id_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/id"
)

func TestNewIsOrderedAndValid(t *testing.T) {
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = id.New()
		if !id.Valid(ids[i]) {
			t.Fatalf("New() = %q is not Valid", ids[i])
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

func TestValid(t *testing.T) {
	good := id.New()
	for name, s := range map[string]string{
		"nothing":               "",
		"one character too few": good[1:],
		"one too many":          good + "0",
		"upper case":            strings.ToUpper("a" + good[1:]),
		"a letter outside":      "z" + good[1:],
		"a slash":               "/" + good[1:],
	} {
		if id.Valid(s) {
			t.Errorf("%s: Valid(%q) = true", name, s)
		}
	}
}
