// Package objectstore stores files that outlive the machine: in a local folder, or in a bucket of an
// S3-compatible service. An object is written atomically and is durable when Put returns.
package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// Errors of this package. All other errors are failures of the store.
var (
	ErrNotFound = errors.New("there is no such object")
	ErrKey      = errors.New("the key is not valid")
)

// Store holds objects by key: parts of letters, digits and `-_.%=`, separated by single slashes; no part
// begins with a dot. Several goroutines may call its methods.
type Store interface {
	// Put writes an object of size bytes, from one to 5 GiB, and replaces an existing one.
	Put(ctx context.Context, key string, from io.Reader, size int64) error
	// Get reads an object. The caller must close the reader. It returns ErrNotFound if the object is
	// missing.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// List returns the objects whose keys begin with a prefix, in the order of these.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object. A missing object is no error.
	Delete(ctx context.Context, key string) error
}

// Object is an entry of a store.
type Object struct {
	Key  string
	Size int64 // in bytes
}

func byKey(a, b Object) int { return strings.Compare(a.Key, b.Key) }

// Credentials are the keys for an S3-compatible service. Empty ones are searched for where the AWS tools
// do: in the environment, their file and the machine's role.
type Credentials struct{ AccessKey, SecretKey string }

// Open returns the store of an address: `file:///folder` or
// `s3://bucket/prefix?endpoint=https://host:port&region=name`. It makes no request yet, but makes a local
// folder.
func Open(address string, c Credentials) (Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return nil, fmt.Errorf("object store %s: a folder is named by an absolute path, as file:///folder", address)
		}
		return openFolder(u.Path)
	case "s3":
		return openBucket(u, c)
	}
	return nil, fmt.Errorf("object store %s: the address must begin with file:// or s3://", address)
}

// check refuses an ambiguous key.
func check(key string) error {
	if key == "" || len(key) > 900 {
		return fmt.Errorf("%w: it has %d bytes", ErrKey, len(key))
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part[0] == '.' || len(part) > 250 || strings.ContainsFunc(part, isReserved) {
			return fmt.Errorf("%w: %.100q", ErrKey, key)
		}
	}
	return nil
}

func isReserved(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.%=", c)
}
