// Command skipped reads what `go test -json` wrote and prints why tests were skipped, with the number of tests for each
// reason:
//
//	skipped bin/tests.json
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: skipped FILE")
		os.Exit(2)
	}
	f, err := os.Open(os.Args[1]) //nolint:gosec // reading the file that it is given is its purpose
	if err == nil {
		err = report(f, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(1)
	}
}

// event is a line of `go test -json`.
type event struct{ Action, Package, Test, Output string }

// place matches the start of the line in which a test says why it is skipped.
var place = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// report counts the reasons in r and writes them to w, the most frequent first.
func report(r io.Reader, w io.Writer) error {
	said, reasons := map[string]string{}, map[string]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20) // the output of a failed test may be one long line
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("read a line of the tests' events: %w", err)
		}
		test := e.Package + " " + e.Test
		switch {
		case e.Action == "output" && place.MatchString(e.Output):
			said[test] = strings.TrimSpace(place.ReplaceAllString(e.Output, ""))
		case e.Action == "skip" && e.Test != "":
			reasons[said[test]]++
		}
	}
	if len(reasons) == 0 {
		return lines.Err()
	}
	fmt.Fprintln(w, "Skipped tests, by reason:")
	byCount := func(a, b string) int { return reasons[b] - reasons[a] }
	for _, reason := range slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(reasons))), byCount) {
		fmt.Fprintf(w, "%5d  %s\n", reasons[reason], reason)
	}
	return lines.Err()
}
