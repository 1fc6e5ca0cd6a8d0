package plan

import (
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// File is a file's row.
type File struct {
	store.Owner
	ID, Filename, MediaType string
	Size                    *int64 // nil: not known yet
	Received                int64
	Promised, Hash          []byte
	Ready                   bool
	TTL                     int64 // in seconds
	CreateTime              time.Time
	Expire                  *time.Time
}

// ForFile returns the row of a new file at the time now.
func ForFile(n store.NewFile, now time.Time) *File {
	f := &File{
		Owner: n.Owner, ID: n.ID, Filename: n.File.GetFilename(), MediaType: n.File.GetMediaType(), Size: n.File.Size,
		Promised: n.Promised, Hash: []byte{}, TTL: int64(n.TTL / time.Second), CreateTime: now,
	}
	if f.Promised == nil {
		f.Promised = []byte{}
	}
	until := now.Add(n.UploadTTL)
	f.Expire = &until
	return f
}

// Counted returns the bytes with which the file counts.
func (f *File) Counted() int64 {
	if f.Ready {
		return f.Received
	}
	return f.CountedAt(f.Received)
}

// CountedAt returns the bytes with which the upload counts once so many have arrived.
func (f *File) CountedAt(received int64) int64 {
	if f.Size == nil {
		return received
	}
	return min(*f.Size, received+store.UploadPart)
}

// Until returns when a file that is ready at the time now is deleted; nil: never.
func (f *File) Until(now time.Time) *time.Time {
	if f.TTL == 0 {
		return nil
	}
	until := now.Add(time.Duration(f.TTL) * time.Second)
	return &until
}

// Row returns the file with the state of its upload.
func (f *File) Row() *store.FileRow {
	return &store.FileRow{Owner: f.Owner, ID: f.ID, File: f.Proto(), Promised: f.Promised, Hash: f.Hash}
}

// Proto returns the file as it is shown.
func (f *File) Proto() *sessionv1.File {
	out := &sessionv1.File{
		Name: "files/" + f.ID, Filename: f.Filename, MediaType: f.MediaType, Size: f.Size, Received: f.Received, State: sessionv1.FileState_FILE_STATE_UPLOADING,
		User: UserName(f.User), CreateTime: timestamppb.New(f.CreateTime), ExpireTime: timestamp(f.Expire), Sha256: hex.EncodeToString(f.Promised),
	}
	if f.Ready {
		out.State, out.Sha256, out.Size = sessionv1.FileState_FILE_STATE_READY, hex.EncodeToString(f.Hash), proto.Int64(f.Received)
	}
	return out
}
