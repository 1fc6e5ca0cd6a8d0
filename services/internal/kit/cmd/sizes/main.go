// Command sizes fails when a type or a file is larger than a reader can keep in mind: a type of more than 40
// methods or 20 fields, a file of more than 400 lines. Generated files and tests do not count.
//
//	go run ./services/internal/kit/cmd/sizes .
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, err := measure(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
	for _, line := range found {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(found) > 0 {
		fmt.Fprintln(os.Stderr, "Divide these by subject: each part gets its own state, file and tests.")
		os.Exit(1)
	}
}
