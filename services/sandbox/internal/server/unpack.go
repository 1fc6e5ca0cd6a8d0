package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

// UnpackFiles unpacks an archive into a new directory of a workspace in which commands may run.
func (s *fileServer) UnpackFiles(stream grpc.ClientStreamingServer[sandboxv1.UnpackFilesRequest, sandboxv1.UnpackFilesResponse]) error {
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return invalid("kind", "the first request must be `start`")
	}
	ctx := stream.Context()
	c, err := call(ctx, start.GetCall())
	if err != nil {
		return status(err)
	}
	w, release, err := s.node.View(c.Key, c.Generation)
	if err != nil {
		return status(err)
	}
	defer release()
	t, err := openSpace(ctx, w)
	if err != nil {
		return status(err)
	}
	defer func() { _ = t.Close() }()
	if err := files.CheckBundle(t.Space, filename.Decode(start.GetPath())); err != nil {
		return status(err)
	}
	b, err := t.Bundle()
	if err != nil {
		return status(err)
	}
	defer func() {
		b.Discard()
		w.Recount()
	}()
	in := &packedFiles{stream: stream}
	hash := sha256.New()
	if err := unpackInto(ctx, w, b.Tree, formats[start.GetFormat()], io.TeeReader(in, hash)); err != nil {
		return status(err)
	}
	c.Epoch = cmp.Or(in.epoch, c.Epoch)
	resp, err := s.putBundle(c, t, b, start, hash.Sum(nil))
	if err != nil {
		return status(err)
	}
	return stream.SendAndClose(resp)
}

// putBundle moves the unpacked directory to its place, once for the call.
func (s *fileServer) putBundle(c box.Call, t *space, b *files.Bundle, start *sandboxv1.UnpackFilesStart, sum []byte) (*sandboxv1.UnpackFilesResponse, error) {
	request, err := json.Marshal([]any{start.GetPath(), start.GetFormat(), sum})
	if err != nil {
		return nil, err
	}
	raw, err := s.node.Mutate(c, box.Change{
		Method: "unpack", Request: request, Failure: failure,
		Do: func(_ *box.Workspace, intend func([]byte) error) ([]byte, error) {
			info, err := t.PutBundle(b, filename.Decode(start.GetPath()), func(p files.RenameStep) error {
				return journalRename(p, &sandboxv1.UnpackFilesResponse{}, intend)
			})
			if err != nil {
				return nil, err
			}
			return proto.Marshal(&sandboxv1.UnpackFilesResponse{File: fileInfo(info)})
		},
	})
	if err != nil {
		return nil, err
	}
	resp := &sandboxv1.UnpackFilesResponse{}
	return resp, proto.Unmarshal(raw, resp)
}

// packedFiles reads the archive of a stream.
type packedFiles struct {
	stream    grpc.ClientStreamingServer[sandboxv1.UnpackFilesRequest, sandboxv1.UnpackFilesResponse]
	remaining []byte
	epoch     int64 // at the end, if the caller sent it
}

func (r *packedFiles) Read(b []byte) (int, error) {
	for len(r.remaining) == 0 {
		m, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		switch kind := m.GetKind().(type) {
		case *sandboxv1.UnpackFilesRequest_Start:
			return 0, invalid("kind", "only the first request may be `start`")
		case *sandboxv1.UnpackFilesRequest_Epoch:
			r.epoch = kind.Epoch
		}
		r.remaining = m.GetData()
	}
	n := copy(b, r.remaining)
	r.remaining = r.remaining[n:]
	return n, nil
}
