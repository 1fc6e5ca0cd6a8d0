package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/pool"
)

// putFiles puts the files that all pods are shown on the volume: init and the trusted certificates.
func (m *maker) putFiles() error {
	raw, err := pool.LoadInit(m.o.Init)
	if err != nil {
		return err
	}
	if err := m.put(filepath.Join(initFolder, filepath.Base(initFile)), raw, 0o555); err != nil {
		return fmt.Errorf("put init on the volume: %w", err)
	}
	return m.putTrust()
}

// putTrust updates the certificates on the volume if they have changed: the node renews its own while it
// runs.
func (m *maker) putTrust() error {
	if m.o.Trust == "" {
		return nil
	}
	name := filepath.Join(trustFolder, filepath.Base(pool.TrustPath))
	raw, err := os.ReadFile(m.o.Trust)
	if err == nil {
		if there, bad := os.ReadFile(filepath.Join(m.data, name)); bad == nil && bytes.Equal(there, raw) {
			return nil
		}
		err = m.put(name, raw, 0o444)
	}
	if err != nil {
		return fmt.Errorf("put the trusted certificates on the volume: %w", err)
	}
	return nil
}

// put puts a file on the volume, which only the service can change. Running pods keep the version that they
// have.
func (m *maker) put(name string, raw []byte, mode os.FileMode) error {
	name = filepath.Join(m.data, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
