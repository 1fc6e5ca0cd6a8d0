package store

import (
	"context"
	"errors"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Errors of files.
var (
	// ErrOffset says that the upload goes on at another offset.
	ErrOffset = errors.New("the upload goes on at another offset")
	// ErrReady says that the upload has ended.
	ErrReady = errors.New("the upload has ended")
	// ErrFull says that the files of the user or the tenant are as large as they may be.
	ErrFull = errors.New("the files are as large as they may be")
	// ErrUploads says that the user has as many uploads that have not ended as a user may have.
	ErrUploads = errors.New("too many uploads have not ended")
)

// FileLimits bounds the bytes of all files, and the uploads of a user that have not ended; 0 bounds nothing.
type FileLimits struct{ User, Tenant, Uploads int64 }

// UploadPart is the size of a part of an upload. An upload reserves one part beyond what has arrived.
const UploadPart = 8 << 20

// NewFile describes a file to be created.
type NewFile struct {
	Owner
	ID string
	// File has the filename, the media type and perhaps the size.
	File *sessionv1.File
	// Promised is the SHA-256 that the content must have; nil: any.
	Promised []byte
	// TTL is how long the file is kept once it is ready; 0: for good.
	TTL time.Duration
	// UploadTTL is how long the upload may stand still.
	UploadTTL time.Duration
	Limits    FileLimits
	Request   Request
}

// FileRow is a file with the state of its upload.
type FileRow struct {
	Owner
	ID       string
	File     *sessionv1.File
	Promised []byte
	Hash     []byte // the state of the hash of what has arrived, opaque to the store
}

// FilePart is a part of a file's content.
type FilePart struct {
	Offset, Size int64
	Object       string // its key in the object store
}

// AppendPart is a part that was stored in the object store.
type AppendPart struct {
	Tenant, ID string
	FilePart
	Hash      []byte // after the part
	UploadTTL time.Duration
	Limits    FileLimits
}

// FilePage selects a page of files, the newest first.
type FilePage struct {
	Tenant, User string // User empty: of all users
	// After continues behind this file (create time, then id, both descending).
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// Files stores what is known of users' files.
//
// A file counts with its size. Until its upload ends it counts with the bytes that have arrived, and with the next
// part if its size is announced: an announcement reserves no more. A deletion puts a JobFile with the file's id, which
// deletes the content.
type Files interface {
	// CreateFile creates a file. Its announced size must fit into what is left. ErrFull, ErrUploads,
	// ErrRequestIDReused.
	CreateFile(ctx context.Context, n NewFile) (Answer, error)
	// GetFile reads a file, or ErrNotFound. One whose time has come is not found.
	GetFile(ctx context.Context, tenant, id string) (*FileRow, error)
	// ListFiles lists a page of files.
	ListFiles(ctx context.Context, p FilePage) ([]*sessionv1.File, error)
	// FileParts lists the parts of a file that end behind an offset, in order.
	FileParts(ctx context.Context, tenant, id string, offset int64) ([]FilePart, error)
	// AppendPart adds a part that begins where the last one ends. ErrNotFound, ErrReady, ErrOffset, ErrFull.
	AppendPart(ctx context.Context, p AppendPart) error
	// FinishFile ends an upload of so many bytes. ErrNotFound, ErrReady, ErrOffset.
	FinishFile(ctx context.Context, tenant, id string, size int64, sum []byte) error
	// DeleteFile deletes a file. ErrNotFound, ErrRequestIDReused.
	DeleteFile(ctx context.Context, tenant, id string, r Request) (Answer, error)
	// ExpireFiles deletes at most limit files, of any tenant, whose time has come, and returns how many it has
	// deleted.
	ExpireFiles(ctx context.Context, limit int) (int, error)
}
