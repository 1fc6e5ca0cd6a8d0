// Command sizes fails when something is larger than limits.go says: a type, a file, a line, a package, what a package knows, a
// module, or a program that is built.
//
//	go run ./gen/cmd/sizes .           # the source
//	go run ./gen/cmd/sizes . programs  # and what is built in bin
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	s, err := measure(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
	found := s.report()
	if len(os.Args) > 2 {
		found = append(found, weigh(filepath.Join(root, "bin"))...)
	}
	for _, line := range found {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(found) > 0 {
		fmt.Fprintln(os.Stderr, "Divide these by subject: each part gets its own state, file and tests.")
		os.Exit(1)
	}
}
