package box

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// usesFile has what a command did with the network, a line each, while it runs: the rest of what
// is known of it then is lost with the service.
const usesFile = "network"

// noteUse keeps a use. It is only for a crash: at the command's end the network tells of all.
func (e *Exec) noteUse(u Use) {
	e.disk.Lock()
	defer e.disk.Unlock()
	if e.gone {
		return
	}
	if err := e.appendUse(u); err != nil {
		e.node.o.Log.Error("cannot note what a command did with the network", "call_id", e.rec.CallID, "error", err)
	}
}

// appendUse writes a line. disk is held.
func (e *Exec) appendUse(u Use) error {
	line, err := json.Marshal(u)
	if err != nil {
		return err
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

// readUses are those that were noted of a command whose end nobody saw. What a crash tore, the last
// one alone, is left out.
func readUses(dir string) ([]Use, error) {
	f, err := os.Open(filepath.Join(dir, usesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var all []Use
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var u Use
		if json.Unmarshal(lines.Bytes(), &u) != nil {
			break
		}
		all = append(all, u)
	}
	return all, lines.Err()
}
