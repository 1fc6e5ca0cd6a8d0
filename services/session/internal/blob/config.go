package blob

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Config configures the files of users.
type Config struct {
	Store       string        `key:"store" help:"where users' files are kept: file:///folder, or s3://bucket/prefix?endpoint=https://host:port&region=name; empty: the folder files in the data directory with SQLite, and no files with Postgres, whose replicas need one store"`
	AccessKey   config.Secret `key:"access-key" help:"access key for the bucket; empty takes the usual AWS environment variables and files"`
	SecretKey   config.Secret `key:"secret-key" help:"secret key for the bucket"`
	MaxBytes    config.Size   `key:"max-bytes" help:"the largest file"`
	UserBytes   config.Size   `key:"user-bytes" help:"the most bytes of one user's files; 0: without limit"`
	TenantBytes config.Size   `key:"tenant-bytes" help:"the most bytes of one tenant's files; 0: without limit"`
	UserUploads int64         `key:"user-uploads" help:"the most uploads of one user that have not ended; until its end each counts with what has arrived and one part of 8 MiB; 0: without limit"`
	TTL         time.Duration `key:"ttl" help:"how long a file is kept that names no time of its own; 0: until it is deleted"`
	UploadTTL   time.Duration `key:"upload-ttl" help:"how long an upload may stand still until it is deleted"`
	Scan        string        `key:"scan" help:"the socket of clamd, which scans each upload at its end: unix:///path or tcp://host:port; while it does not answer no file is accepted; empty: no scan"`
}

// Defaults returns the default configuration.
func Defaults() Config {
	return Config{MaxBytes: 5 << 30, UserBytes: 20 << 30, TenantBytes: 100 << 30, UserUploads: 100, UploadTTL: 24 * time.Hour}
}

// Validate reports every fault.
func (c Config) Validate() error {
	var faults []error
	if (c.AccessKey == "") != (c.SecretKey == "") {
		faults = append(faults, errors.New("files: access-key and secret-key go together; one is missing"))
	}
	if c.MaxBytes < 1 || c.UserBytes < 0 || c.TenantBytes < 0 || c.UserUploads < 0 {
		faults = append(faults, errors.New("files: max-bytes must be at least 1, and user-bytes, tenant-bytes and user-uploads not negative"))
	}
	if c.TTL < 0 || c.TTL > 0 && c.TTL < time.Second {
		faults = append(faults, fmt.Errorf("files.ttl: %v is neither 0 nor at least 1s", c.TTL))
	}
	if c.UploadTTL < time.Minute {
		faults = append(faults, fmt.Errorf("files.upload-ttl: %v is less than 1m", c.UploadTTL))
	}
	if _, _, err := c.scanner(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// scanner returns the address of the scanner; empty: none.
func (c Config) scanner() (network, address string, err error) {
	if c.Scan == "" {
		return "", "", nil
	}
	u, err := url.Parse(c.Scan)
	switch {
	case err == nil && u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return "unix", u.Path, nil
	case err == nil && u.Scheme == "tcp" && u.Port() != "" && u.Path == "":
		return "tcp", u.Host, nil
	}
	return "", "", fmt.Errorf("files.scan: %q is not an address such as unix:///run/clamav/clamd.ctl or tcp://127.0.0.1:3310", c.Scan)
}

// Open returns the files. folder is used if no store is configured. It returns nil if that is empty, too.
func Open(c Config, folder string, rows store.Files) (*Blobs, error) {
	at := c.Store
	if at == "" && folder != "" {
		abs, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("the folder of files: %w", err)
		}
		at = (&url.URL{Scheme: "file", Path: abs}).String()
	}
	if at == "" {
		return nil, nil //nolint:nilnil // no store is a valid configuration
	}
	objects, err := objectstore.Open(at, objectstore.Credentials{AccessKey: c.AccessKey.Reveal(), SecretKey: c.SecretKey.Reveal()})
	if err != nil {
		return nil, fmt.Errorf("files.store: %w", err)
	}
	b := &Blobs{
		Objects: objects, Rows: rows, MaxBytes: int64(c.MaxBytes), UploadTTL: c.UploadTTL,
		Limits: store.FileLimits{User: int64(c.UserBytes), Tenant: int64(c.TenantBytes), Uploads: c.UserUploads},
	}
	network, address, err := c.scanner()
	if err != nil {
		return nil, err
	}
	if network != "" {
		b.Scanner = clamd{network, address}
	}
	return b, nil
}
