// Package sampletree makes the workspace on which work with files is measured:
// 10,000 files, 440 MB, the same each time.
package sampletree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Files is how many files there are.
const Files = 10_000

// Name is the path of a file, of which there are Files.
func Name(dir string, i int) string {
	return filepath.Join(dir, fmt.Sprintf("pkg%d/part%d/file%d.go", i%25, i%500, i))
}

// Fill makes the tree: in 500 folders 9,990 files of 100 bytes to 72 KB, of words
// as in source code, and ten of 8 MiB that do not compress.
func Fill(dir string) error {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same tree each time
	for i := range Files {
		content := Words(r, 100+r.IntN(72_000))
		if i%1000 == 0 {
			content = noise(r, 8<<20)
		}
		if err := os.MkdirAll(filepath.Dir(Name(dir, i)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(Name(dir, i), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Words are n bytes as in source code.
func Words(r *rand.Rand, n int) []byte {
	var b []byte
	for len(b) < n {
		b = fmt.Appendf(b, "func name%d(value%d int) error {\n", r.IntN(5000), r.IntN(90))
	}
	return b[:n]
}
