package host

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// noteFile holds the addresses of the server that runs on the data directory.
const noteFile = ".addresses.json"

// note keeps the addresses of this server in its data directory, for commands
// that find the directory in use.
type note struct {
	data      string
	log       *slog.Logger
	addresses map[string]string // by face
}

// forget removes the note of an earlier server. The caller holds the lock of the
// data directory. Nothing removes the note at the end: without the lock it could
// be the next server's.
func forget(data string) error {
	if err := os.Remove(filepath.Join(data, noteFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// listening adds an address. The note is for hints only, so a failure stops nothing.
func (n *note) listening(face, address string) {
	n.addresses[face] = address
	text, err := json.Marshal(n.addresses)
	if err == nil {
		_, err = write(filepath.Join(n.data, noteFile), string(text))
	}
	if err != nil {
		n.log.Warn("cannot write the address of a listener to the data directory, where other commands look for it", "face", face, "error", err)
	}
}

// Addresses returns the addresses of the server that runs on a data directory,
// by face as in [Host.Run]. It is for when the directory is in use, and empty
// when the program that uses it has no listeners.
func Addresses(data string) map[string]string {
	addresses := map[string]string{}
	text, err := os.ReadFile(filepath.Join(data, noteFile))
	if err != nil || json.Unmarshal(text, &addresses) != nil {
		return nil
	}
	return addresses
}
