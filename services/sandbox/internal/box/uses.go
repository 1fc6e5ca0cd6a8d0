package box

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// usesFile records a running command's uses of the network, one to a line: if the service dies, other
// records of them are lost.
const usesFile = "network"

// notedUse is a line. A use has one line when it is open to the outside, as if it were complete, and
// another one with the same number when it has ended.
type notedUse struct {
	Number int64 `json:"number,omitempty"`
	Use
}

// noteUse records a use, only for the case of a crash: at the command's end the network reports all uses.
// So a full disk does not fail a request, and is logged once.
func (e *Exec) noteUse(number int64, u Use) {
	e.disk.Lock()
	defer e.disk.Unlock()
	if e.gone {
		return
	}
	err := e.appendUse(notedUse{number, u})
	if err != nil && !e.torn {
		e.node.o.Log.Error("cannot note all that a command does with the network: should the service die while it runs, it is not told", "call_id", e.rec.CallID, "error", err)
	}
	e.torn = e.torn || err != nil
}

// appendUse writes a line. disk is held.
func (e *Exec) appendUse(u notedUse) error {
	line, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if e.torn { // the previous line may have no end
		line = append([]byte{'\n'}, line...)
	}
	if err := e.makeFolder(); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(e.dir, usesFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// readUses returns the recorded uses of a command whose end was not seen. It skips lines that a crash or a
// full disk left incomplete.
func readUses(dir string) ([]Use, error) {
	raw, err := os.ReadFile(filepath.Join(dir, usesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Use
	known := map[int64]int{} // index in all
	for line := range bytes.Lines(raw) {
		var u notedUse
		if json.Unmarshal(line, &u) != nil {
			continue
		}
		if at, begun := known[u.Number]; begun && u.Number != 0 {
			all[at] = u.Use
			continue
		}
		known[u.Number] = len(all)
		all = append(all, u.Use)
	}
	return all, nil
}
