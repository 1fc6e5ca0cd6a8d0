// Package relaytree has the relay of the runtime claude-code, as a folder that workspaces show.
package relaytree

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
)

// bin holds the relay, built from package relay. The folder is empty in a fresh clone, so that it compiles;
// `make` fills it.
//
//go:embed all:bin
var bin embed.FS

const (
	// Name is the name of the folder that the relay comes in.
	Name = "fairlead-runtime"
	// Path is where commands in the sandbox find it.
	Path = "/skills/" + Name + "/relay"
)

// Tree is the folder with the relay, which every workspace of the runtime shows.
type Tree struct {
	Digest  string // the SHA-256 of the archive
	Archive []byte
}

// Get returns the folder with the relay.
var Get = sync.OnceValues(func() (Tree, error) {
	relay, err := bin.ReadFile("bin/relay")
	if err != nil {
		return Tree{}, errors.New("this program was built without the relay of the runtime claude-code: build it with `make build` (for tests alone: `make init`)")
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err = w.WriteHeader(&tar.Header{Name: "relay", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(relay)), Format: tar.FormatUSTAR})
	if err == nil {
		_, err = w.Write(relay)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return Tree{}, fmt.Errorf("pack the relay: %w", err)
	}
	sum := sha256.Sum256(b.Bytes())
	return Tree{Digest: hex.EncodeToString(sum[:]), Archive: b.Bytes()}, nil
})
