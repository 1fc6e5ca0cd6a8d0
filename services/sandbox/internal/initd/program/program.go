// Package program carries the program that is the first process of every sandbox,
// made from the folder above.
package program

import (
	"embed"
	"errors"
	"fmt"
	"os"
)

// The folder is empty in a fresh clone, so that it compiles; `make` fills it.
//
//go:embed all:bin
var bin embed.FS

// Load returns the program: the file at path, or the one that this program was
// built with when path is empty.
func Load(path string) ([]byte, error) {
	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the sandbox's init: %w", err)
		}
		return b, nil
	}
	b, err := bin.ReadFile("bin/init")
	if err != nil {
		return nil, errors.New("this program was built without the sandbox's init: build it with `make build` (for tests alone: `make init`), or name the file with the key `init`")
	}
	return b, nil
}
