// Package prove marks the tests that `make test` leaves to `make prove`: those that take long, exhaust a
// matrix, or need a program that few machines have.
package prove

import (
	"flag"
	"strconv"
	"testing"
)

// Only skips the test under `go test -short`, which `make test` uses. The reason completes the sentence "make prove runs
// it: …".
func Only(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip("make prove runs it: " + reason)
	}
}

// Sample returns every n-th of all under `go test -short`, from the first one on, and otherwise all of them.
func Sample[E any](all []E, n int) []E {
	if !testing.Short() {
		return all
	}
	var some []E
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// SideBySide lets n parallel tests of a package run at a time, unless -parallel is given: more than there are processors
// where they wait most of the time. TestMain calls it.
func SideBySide(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // a test binary has the flag
	}
}
