package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

const (
	metaFile   = "workspace.json"
	recordFile = "record.json"
)

// save writes a value as JSON, atomically. The file is on disk when save returns.
func save(path string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, raw)
}

// note is save without a sync: a crash of the machine may lose the file.
func note(path string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, raw, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// read reads a file that save wrote. It returns os.ErrNotExist if the file is missing.
func read(path string, value any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// survey reads the user of each workspace and finishes deletions that a crash interrupted. A command can
// cause files that cannot be deleted, so these do not keep the node from starting.
func (n *Node) survey() error {
	if err := n.dir.emptyTrash(); err != nil {
		return fmt.Errorf("finish an interrupted deletion: %w", err)
	}
	return n.dir.each(n.surveySession)
}

// surveySession removes a workspace whose creation or import was interrupted. Without its meta file it does
// not exist, and it may never be requested from this node again.
func (n *Node) surveySession(tenant, session string) error {
	k := Key{Tenant: tenantOf(tenant), Session: session}
	if ours := k.check() == nil && k.folder() == tenant; !ours {
		return nil
	}
	dir := filepath.Join(n.dir.path, tenant, session)
	var m meta
	err := read(filepath.Join(dir, metaFile), &m)
	if errors.Is(err, os.ErrNotExist) {
		if err := n.dir.discard(dir); err != nil {
			n.o.Log.Error("cannot remove the leftovers of an interrupted start", "folder", dir, "error", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := n.forgetValues(filepath.Join(dir, metaFile), m); err != nil {
		return err
	}
	return n.slots.claim(m.Slot)
}

// forgetValues removes the values of variables from the meta file of a workspace: older versions stored them.
func (n *Node) forgetValues(file string, m meta) error {
	var old struct {
		Environment struct{ Variables map[string]string }
	}
	if err := read(file, &old); err != nil || len(old.Environment.Variables) == 0 {
		return err
	}
	m.Environment.Secret = true
	if err := save(file, m); err != nil {
		return fmt.Errorf("remove the values of variables from a workspace's meta file: %w", err)
	}
	return nil
}
