package main

import (
	"context"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// filesCommand reads and changes the files of sessions.
type filesCommand struct {
	List lists[listFiles, *sessionv1.SessionFile] `cmd:"" help:"List a directory."`
	Get  getFileCommand                           `cmd:"" help:"Read a file."`
	Put  putFileCommand                           `cmd:"" help:"Write a file."`
	Rm   does[removeFile]                         `cmd:"" help:"Remove a file or a directory."`
}

type listFiles struct {
	Session   string `arg:"" help:"The session."`
	Path      string `arg:"" optional:"" help:"The directory. The default is the workspace."`
	Recursive bool   `short:"r" help:"List everything below the directory."`
	jsonList
}

func (f listFiles) request() proto.Message {
	return &sessionv1.ListSessionFilesRequest{Parent: sessionName(f.Session), Path: f.Path, Recursive: f.Recursive}
}

func (listFiles) row(f *sessionv1.SessionFile) [][]string {
	size, path := strconv.FormatInt(f.GetSize(), 10), f.GetPath()
	switch f.GetType() {
	case sessionv1.SessionFileType_SESSION_FILE_TYPE_DIRECTORY:
		size, path = "-", path+"/"
	case sessionv1.SessionFileType_SESSION_FILE_TYPE_SYMLINK:
		path += " -> " + f.GetLinkTarget()
	}
	return [][]string{{"SIZE", size}, {"CHANGED", stamp(f.GetModifyTime())}, {"PATH", path}}
}

// getFileCommand reads a file.
type getFileCommand struct {
	Session string `arg:"" help:"The session."`
	Path    string `arg:"" help:"The file."`
	Output  string `short:"o" placeholder:"FILE" help:"The file to write. The default is standard output."`
	target
}

// Run reads a file.
func (c getFileCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return save(s.out, c.Output, func(w io.Writer) error {
			stream, err := sessionv1.NewSessionFileServiceClient(b.conn).ReadSessionFile(ctx, &sessionv1.ReadSessionFileRequest{Parent: sessionName(c.Session), Path: c.Path})
			if err != nil {
				return terminal.Explained(err)
			}
			return receive(stream, w, "file")
		})
	})
}

// putFileCommand writes a file.
type putFileCommand struct {
	Session string `arg:"" help:"The session."`
	File    string `arg:"" help:"The file to send; - is standard input."`
	Path    string `arg:"" optional:"" help:"Its path in the workspace. The default is its name."`
	JSON    bool   `name:"json" help:"Print the file as JSON."`
	target
}

// Run writes a file.
func (c putFileCommand) Run(ctx context.Context, s stdio) error {
	start := &sessionv1.WriteSessionFileStart{Parent: sessionName(c.Session), Path: c.Path, RequestId: id.New()}
	from := s.in
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		from = file
		if st, err := file.Stat(); err == nil {
			start.Mode = uint32(st.Mode().Perm())
		}
		if start.Path == "" {
			start.Path = filepath.Base(c.File)
		}
	}
	if start.Path == "" {
		return usage("name the path in the workspace for standard input")
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		made, err := send(ctx, sessionv1.NewSessionFileServiceClient(b.conn).WriteSessionFile,
			&sessionv1.WriteSessionFileRequest{Kind: &sessionv1.WriteSessionFileRequest_Start{Start: start}},
			func(data []byte) *sessionv1.WriteSessionFileRequest {
				return &sessionv1.WriteSessionFileRequest{Kind: &sessionv1.WriteSessionFileRequest_Data{Data: data}}
			}, from)
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return writeJSON(s.out, made.GetFile())
		}
		_, err = fmt.Fprintln(s.out, made.GetFile().GetPath())
		return err
	})
}

type removeFile struct {
	Session   string `arg:"" help:"The session."`
	Path      string `arg:"" help:"The file or directory."`
	Recursive bool   `short:"r" help:"Remove a directory with everything in it."`
}

func (f removeFile) request() proto.Message {
	return &sessionv1.DeleteSessionFileRequest{Parent: sessionName(f.Session), Path: f.Path, Recursive: f.Recursive}
}

func (removeFile) done() string { return "" }

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
		start := &sessionv1.AppendFileStart{Name: name, Offset: f.GetReceived()}
		made, err := send(ctx, sessionv1.NewFileServiceClient(b.conn).AppendFile,
			&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Start{Start: start}},
			func(data []byte) *sessionv1.AppendFileRequest {
				return &sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Data{Data: data}}
			}, from)
		f = made.GetFile()
		return err
	})
	return f, err
}
