// Package blob keeps the content of users' files in the object store.
//
// A file is stored in parts of at most 8 MiB, as its bytes arrive, so that an upload needs little memory and
// goes on after a cut from where it stopped, on any replica. The store's row of the file has the state of the
// SHA-256 after the last part. A part counts once its row is committed; its object has a name that no other
// upload uses.
package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Errors of this package, besides those of the store.
var (
	// ErrNone says that this server keeps no files.
	ErrNone = errors.New("there is no store of files")
	// ErrObjects says that the object store failed.
	ErrObjects = errors.New("the object store failed")
	// ErrChecksum says that the content is not what was promised.
	ErrChecksum = errors.New("the content has another SHA-256 than was promised")
	// ErrTooLong says that more bytes come than the file has, or than a file may have.
	ErrTooLong = errors.New("the content is longer than the file may be")
	// ErrRefused says that the scanner refuses the content.
	ErrRefused = errors.New("the scanner refuses the content")
	// ErrScanner says that the scanner failed.
	ErrScanner = errors.New("the scanner failed")
)

// Unavailable reports whether the object store or the scanner is the cause of an error. Callers do not see the cause.
func Unavailable(err error) bool { return errors.Is(err, ErrObjects) || errors.Is(err, ErrScanner) }

// AnyType is the media type of a file without one.
const AnyType = "application/octet-stream"

// partBytes is the size of a part.
const partBytes = store.UploadPart

// Scanner decides whether content may be used. It returns ErrRefused or ErrScanner.
type Scanner interface {
	Scan(ctx context.Context, content io.Reader) error
}

// Blobs keeps files. It is safe for concurrent use.
type Blobs struct {
	Objects objectstore.Store
	Rows    store.Files
	Scanner Scanner // nil: none
	// MaxBytes bounds one file, and Limits all files.
	MaxBytes int64
	Limits   store.FileLimits
	// UploadTTL is how long an upload may stand still.
	UploadTTL time.Duration
}

// Find returns a file that p sees. Without Blobs it returns ErrNone.
func (b *Blobs) Find(ctx context.Context, p principal.Principal, name string) (*store.FileRow, error) {
	if b == nil {
		return nil, ErrNone
	}
	row, err := b.Rows.GetFile(ctx, p.Tenant, strings.TrimPrefix(name, "files/"))
	if err == nil && !p.Sees(row.User) {
		return nil, store.ErrNotFound
	}
	return row, err
}

// Append adds what from has to a file whose content has so many bytes, and ends the file if it is whole or if
// last is set. What has arrived is kept, also if from fails; the error of from is returned.
func (b *Blobs) Append(ctx context.Context, row *store.FileRow, last bool, from io.Reader) error {
	u, err := b.resume(row)
	if err != nil {
		return err
	}
	most := b.MaxBytes
	if row.File.Size != nil {
		most = row.File.GetSize()
	}
	ended := false
	for part := (bytes.Buffer{}); !ended; part.Reset() { // it grows with what arrives
		n, readErr := io.CopyN(&part, from, min(partBytes, max(most-u.offset, 0)+1))
		ended = errors.Is(readErr, io.EOF)
		if u.offset+n > most {
			return fmt.Errorf("%w: %d bytes", ErrTooLong, most)
		}
		if n > 0 {
			// The bytes are there, so they are kept, even if the caller has gone.
			if err := u.put(context.WithoutCancel(ctx), part.Bytes()); err != nil {
				return err
			}
		}
		if readErr != nil && !ended {
			return readErr
		}
	}
	if last || row.File.Size != nil && u.offset == most {
		return u.finish(ctx)
	}
	return nil
}

// upload is an upload that goes on.
type upload struct {
	*Blobs
	row    *store.FileRow
	offset int64
	sum    hash.Hash
}

func (b *Blobs) resume(row *store.FileRow) (*upload, error) {
	u := &upload{Blobs: b, row: row, offset: row.File.GetReceived(), sum: sha256.New()}
	if u.offset == 0 {
		return u, nil
	}
	if err := u.sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(row.Hash); err != nil { //nolint:forcetypeassert // documented
		return nil, fmt.Errorf("go on with the SHA-256 of files/%s: %w", row.ID, err)
	}
	return u, nil
}

// putTimeout bounds the writing of one part.
const putTimeout = 2 * time.Minute

// put stores the next part.
func (u *upload) put(ctx context.Context, part []byte) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	object := fmt.Sprintf("%s/%s/%016x-%s", u.row.Tenant, u.row.ID, u.offset, id.New())
	if err := u.Objects.Put(ctx, object, bytes.NewReader(part), int64(len(part))); err != nil {
		return fmt.Errorf("%w: %w", ErrObjects, err)
	}
	u.sum.Write(part)
	state, err := u.sum.(encoding.BinaryMarshaler).MarshalBinary() //nolint:forcetypeassert // documented
	if err == nil {
		err = u.Rows.AppendPart(ctx, store.AppendPart{
			Tenant: u.row.Tenant, ID: u.row.ID, FilePart: store.FilePart{Offset: u.offset, Size: int64(len(part)), Object: object},
			Hash: state, UploadTTL: u.UploadTTL, Limits: u.Limits,
		})
	}
	if err != nil {
		if !errors.Is(err, store.ErrUnavailable) { // otherwise the part may count; the file's deletion also deletes it
			err = errors.Join(err, u.Objects.Delete(ctx, object))
		}
		return err
	}
	u.offset += int64(len(part))
	return nil
}

// finish ends the upload. Content that may not be used is deleted.
func (u *upload) finish(ctx context.Context) error {
	sum := u.sum.Sum(nil)
	err := u.check(ctx, sum)
	if errors.Is(err, ErrChecksum) || errors.Is(err, ErrRefused) {
		if _, gone := u.Rows.DeleteFile(ctx, u.row.Tenant, u.row.ID, store.Request{}); gone != nil && !errors.Is(gone, store.ErrNotFound) {
			return gone
		}
	}
	if err != nil {
		return err
	}
	return u.Rows.FinishFile(ctx, u.row.Tenant, u.row.ID, u.offset, sum)
}

func (u *upload) check(ctx context.Context, sum []byte) error {
	if len(u.row.Promised) > 0 && string(u.row.Promised) != string(sum) {
		return fmt.Errorf("%w: it has %x", ErrChecksum, sum)
	}
	if u.Scanner == nil {
		return nil
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := u.Read(ctx, u.row.Tenant, u.row.ID, 0, u.offset, func(b []byte) error {
			_, err := w.Write(b)
			return err
		})
		_ = w.CloseWithError(err)
		done <- err
	}()
	err := u.Scanner.Scan(ctx, r)
	_ = r.CloseWithError(errors.New("the scan has ended"))
	if read := <-done; errors.Is(read, ErrObjects) {
		return read
	}
	return err
}

// pieceBytes is the largest piece that Read sends.
const pieceBytes = 256 << 10

// Read sends size bytes of a file from an offset on.
func (b *Blobs) Read(ctx context.Context, tenant, file string, offset, size int64, send func([]byte) error) error {
	parts, err := b.Rows.FileParts(ctx, tenant, file, offset)
	if err != nil {
		return err
	}
	buffer := make([]byte, min(size, pieceBytes))
	for _, p := range parts {
		if size == 0 {
			return nil
		}
		skip := offset - p.Offset
		n := min(size, p.Size-skip)
		if err := b.readPart(ctx, p, skip, n, buffer, send); err != nil {
			return err
		}
		offset, size = offset+n, size-n
	}
	if size > 0 {
		return fmt.Errorf("%w: %d bytes of files/%s are missing", ErrObjects, size, file)
	}
	return nil
}

// ReadAll returns the content of a file that is complete.
func (b *Blobs) ReadAll(ctx context.Context, row *store.FileRow) (data []byte, err error) {
	err = b.Read(ctx, row.Tenant, row.ID, 0, row.File.GetSize(), func(piece []byte) error {
		data = append(data, piece...)
		return nil
	})
	return data, err
}

func (b *Blobs) readPart(ctx context.Context, p store.FilePart, skip, size int64, buffer []byte, send func([]byte) error) error {
	o, err := b.Objects.Get(ctx, p.Object)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrObjects, err)
	}
	defer func() { _ = o.Close() }()
	if s, ok := o.(io.Seeker); ok {
		_, err = s.Seek(skip, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, o, skip)
	}
	for ; err == nil && size > 0; size -= int64(len(buffer)) {
		buffer = buffer[:min(size, int64(len(buffer)))]
		if _, err = io.ReadFull(o, buffer); err != nil {
			break
		}
		if err := send(buffer); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrObjects, err)
	}
	return nil
}
