package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

// uploadCommand uploads a file for use anywhere.
type uploadCommand struct {
	File string        `arg:"" help:"The file to send."`
	Type string        `placeholder:"TYPE" help:"Its media type. The default follows from its name."`
	TTL  time.Duration `name:"ttl" help:"How long it is kept. The default is as long as the operator says."`
	JSON bool          `name:"json" help:"Print the file as JSON."`
	target
}

// Run uploads a file. It goes on after a cut as long as the server can be reached again.
func (c uploadCommand) Run(ctx context.Context, s stdio) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return usage("%s is not a regular file", c.File)
	}
	create := &sessionv1.CreateFileRequest{
		File: &sessionv1.File{Filename: filepath.Base(c.File), MediaType: c.Type, Size: proto.Int64(st.Size())},
	}
	if c.Type == "" {
		create.File.MediaType = mime.TypeByExtension(filepath.Ext(c.File))
	}
	if c.TTL > 0 {
		create.Ttl = durationpb.New(c.TTL)
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		f, err := b.uploadFile(ctx, create, file)
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return writeJSON(s.out, f)
		}
		_, err = fmt.Fprintln(s.out, f.GetName())
		return err
	})
}

// uploadFile begins a file and sends it from where the server has stopped.
func (b *backend) uploadFile(ctx context.Context, create *sessionv1.CreateFileRequest, from io.ReadSeeker) (f *sessionv1.File, err error) {
	f, err = change[*sessionv1.File](ctx, b, create)
	if err != nil || f.GetState() == sessionv1.FileState_FILE_STATE_READY {
		return f, err
	}
	name := f.GetName()
	err = retry(ctx, func() error {
		f, err = get[*sessionv1.File](ctx, b, &sessionv1.GetFileRequest{Name: name})
		if err != nil || f.GetState() == sessionv1.FileState_FILE_STATE_READY {
			return err
		}
		if _, err := from.Seek(f.GetReceived(), io.SeekStart); err != nil {
			return err
		}
		f, err = b.appendFile(ctx, &sessionv1.AppendFileStart{Name: name, Offset: f.GetReceived()}, from)
		return err
	})
	return f, err
}

func (b *backend) appendFile(ctx context.Context, start *sessionv1.AppendFileStart, from io.Reader) (*sessionv1.File, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := sessionv1.NewFileServiceClient(b.conn).AppendFile(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Start{Start: start}})
	if err == nil {
		err = eachPiece(from, func(b []byte) error {
			return stream.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Data{Data: b}})
		})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	resp, err := stream.CloseAndRecv() // also returns the cause of a failed Send
	return resp.GetFile(), err
}
