package tree

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

// ErrDigest means that an archive is not the one that its digest names.
var ErrDigest = errors.New("the archive does not have the digest")

// Put makes a tree from a tar, and reads all of it. The digest is the SHA-256 of the tar. It does nothing,
// and reads nothing, if the node has the tree. The tar holds files and folders alone. After an error nothing
// is left.
func (s *Store) Put(ctx context.Context, digest string, tar io.Reader) (created bool, err error) {
	if !digestForm.MatchString(digest) {
		return false, fmt.Errorf("%w: %.80q is no SHA-256", ErrDigest, digest)
	}
	if s.Has(digest) {
		return false, nil
	}
	draft, err := os.MkdirTemp(filepath.Join(s.o.Dir, drafts), "")
	if err != nil {
		return false, fmt.Errorf("make a tree: %w", err)
	}
	defer func() { s.o.Leftovers.All(draft) }()
	at := filepath.Join(draft, "tree")
	bytes, err := s.unpack(ctx, draft, at, digest, tar)
	if err != nil {
		return false, err
	}
	return s.keep(digest, at, bytes)
}

// unpack unpacks a tar to a new folder and checks its digest. It returns how many bytes the tree takes.
func (s *Store) unpack(ctx context.Context, draft, at, digest string, tar io.Reader) (bytes int64, err error) {
	staging := filepath.Join(draft, "staging")
	if err := errors.Join(os.Mkdir(at, 0o700), os.Mkdir(staging, 0o700)); err != nil {
		return 0, fmt.Errorf("make a tree: %w", err)
	}
	t, err := files.Open(at, staging, files.Owner{UID: -1, GID: -1})
	if err != nil {
		return 0, fmt.Errorf("make a tree: %w", err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	content, entries := int64(0), int64(0)
	reserve := func(n int64) error {
		content, entries = content+n, entries+1
		if content > s.o.Limits.TreeBytes || entries > s.o.Limits.TreeFiles {
			return fmt.Errorf("%w: a tree may have %d bytes in %d files and folders", files.ErrArchive, s.o.Limits.TreeBytes, s.o.Limits.TreeFiles)
		}
		return nil
	}
	t.Folder = func() error { return reserve(0) }
	// Padding and headers take room besides the content.
	whole := io.LimitReader(tar, s.o.Limits.TreeBytes+(s.o.Limits.TreeFiles+1)*(4<<10)+(1<<20))
	sum := sha256.New()
	in := io.TeeReader(whole, sum)
	if err := t.Unpack(ctx, in, reserve); err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return 0, err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return 0, fmt.Errorf("%w %s: it has %s", ErrDigest, digest, got)
	}
	return content + (entries+1)*entryBytes, open(at)
}

// open gives all users the right to read a tree, and refuses anything but files and folders. A link in a
// tree would lead elsewhere in each sandbox.
func open(at string) error {
	return filepath.WalkDir(at, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		switch {
		case st.IsDir():
			mode = 0o755
		case !st.Mode().IsRegular():
			rel, _ := filepath.Rel(at, name)
			return fmt.Errorf("%w: %.200q is a link: a tree has files and folders alone", files.ErrArchive, rel)
		case st.Mode()&0o111 != 0:
			mode = 0o755
		}
		return os.Chmod(name, mode) //nolint:gosec // no command sees the folder yet
	})
}

// keep moves a tree to its place once its content is on the disk.
func (s *Store) keep(digest, at string, bytes int64) (created bool, err error) {
	dir, err := os.Open(at)
	if err != nil {
		return false, err
	}
	if err := errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close()); err != nil {
		return false, fmt.Errorf("sync a tree: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.use(digest) != nil {
		return false, nil // another caller was first
	}
	if err := s.room(bytes); err != nil {
		return false, err
	}
	to := filepath.Join(s.o.Dir, digest+"."+rand.Text())
	if err := os.Rename(at, to); err != nil {
		return false, fmt.Errorf("put a tree in place: %w", err)
	}
	now := s.o.Now()
	_ = os.Chtimes(to, now, now)
	s.all[digest] = &entry{path: to, bytes: bytes, used: now}
	return true, nil
}
