package managed

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// mounts are the folders of the hosted sandbox, and ours in the workspace.
var mounts = []struct{ theirs, ours string }{{"/mnt/session/outputs/", "artifacts/"}, {"/mnt/session/", ""}, {"/workspace/", ""}}

// mount keeps the files with which a session begins.
func (d *sessionDoc) mount(in []attachment) error {
	for i, r := range in {
		field := fmt.Sprintf("resources[%d]", i)
		if r.Type != "file" {
			return resource.Bad(field+".type", problem.Excerpt(r.Type)+" is not served; Fairlead's agents name their repositories, and there are no memory stores")
		}
		if r.File == "" {
			return resource.Bad(field+".file_id", "it is required")
		}
		where := r.Path
		if where == "" {
			where = "/mnt/session/uploads/" + r.File
		}
		inside := ""
		for _, m := range mounts {
			if rest, ok := strings.CutPrefix(path.Clean(where), m.theirs); ok && inside == "" {
				inside = m.ours + rest
			}
		}
		if inside == "" {
			return resource.Bad(field+".mount_path", problem.Excerpt(where)+" is not below /workspace or /mnt/session")
		}
		d.Resources = append(d.Resources, map[string]any{"type": "file", "file_id": r.File, "mount_path": "/workspace/" + inside})
	}
	return nil
}

// copyFile writes a file of the user into a session's workspace.
func (s *filesServer) copyFile(c *request, session string, r map[string]any, key string) error {
	id, _ := r["file_id"].(string)
	where, _ := r["mount_path"].(string)
	from, err := s.blobs.ReadFile(c.R.Context(), &sessionv1.ReadFileRequest{Name: fileName(id)})
	if err != nil {
		return err
	}
	to, err := s.workspaces.WriteSessionFile(c.R.Context())
	if err != nil {
		return err
	}
	start := &sessionv1.WriteSessionFileStart{Parent: session, Path: strings.TrimPrefix(where, "/workspace/"), RequestId: key}
	if err := to.Send(&sessionv1.WriteSessionFileRequest{Kind: &sessionv1.WriteSessionFileRequest_Start{Start: start}}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for {
		m, err := from.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(m.GetData()) == 0 {
			continue
		}
		if err := to.Send(&sessionv1.WriteSessionFileRequest{Kind: &sessionv1.WriteSessionFileRequest_Data{Data: m.GetData()}}); err != nil {
			break // CloseAndRecv has the reason
		}
	}
	_, err = to.CloseAndRecv()
	return err
}

func fileName(id string) string { return "files/" + strings.TrimPrefix(id, filePrefix) }

// fileJSON returns a file of the user as the wire has it.
func fileJSON(f *sessionv1.File) map[string]any {
	kind := f.GetMediaType()
	if kind == "" {
		kind = "application/octet-stream"
	}
	out := map[string]any{
		"id": filePrefix + wire.LastPart(f.GetName()), "type": "file", "filename": f.GetFilename(), "mime_type": kind, "size_bytes": f.GetSize(),
		"created_at": stamp(f.GetCreateTime().AsTime()), "downloadable": true,
	}
	if f.ExpireTime != nil {
		out["expires_at"] = stamp(f.ExpireTime.AsTime())
	}
	return out
}

// outputPrefix begins the id of a file in a session's workspace.
const outputPrefix = filePrefix + "w."

func outputID(session, path string) string {
	return outputPrefix + wire.LastPart(session) + "." + base64.RawURLEncoding.EncodeToString([]byte(path))
}

// output returns the session and the path of a file in a workspace.
func output(id string) (session, path string, ok bool) {
	rest, ok := strings.CutPrefix(id, outputPrefix)
	if !ok {
		return "", "", false
	}
	name, text, ok := strings.Cut(rest, ".")
	b, err := base64.RawURLEncoding.DecodeString(text)
	return "sessions/" + name, string(b), ok && err == nil
}

func outputJSON(session, where string, size int64, kind string, at time.Time) map[string]any {
	if kind == "" {
		kind = mime.TypeByExtension(path.Ext(where))
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	return map[string]any{
		"id": outputID(session, where), "type": "file", "filename": path.Base(where), "mime_type": kind, "size_bytes": size, "created_at": stamp(at),
		"downloadable": true, "scope": map[string]any{"type": "session", "id": sessionPrefix + wire.LastPart(session)},
	}
}

func (s *filesServer) uploadFile(c *request) (any, error) {
	c.R.Body = io.NopCloser(codec.NewPatient(c.W, c.R, s.wire.BodyTimeout))
	form, err := c.R.MultipartReader()
	if err != nil {
		return nil, resource.Bad("file", "the body is no form with a file (multipart/form-data)")
	}
	create := &sessionv1.CreateFileRequest{File: &sessionv1.File{}, RequestId: c.Key}
	for {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil, resource.Bad("file", "the form has no file")
		case err != nil:
			return nil, problem.BodyMalformed("file", "the form broke off")
		case part.FormName() == "file":
			create.File.Filename, create.File.MediaType = part.FileName(), part.Header.Get("Content-Type")
			return s.upload(c, create, part)
		case part.FormName() == "expires_in_seconds":
			text, _ := io.ReadAll(io.LimitReader(part, 32))
			n, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil || n < 1 {
				return nil, resource.Bad("expires_in_seconds", problem.Excerpt(string(text))+" is not a number of seconds")
			}
			create.Ttl = durationpb.New(time.Duration(n) * time.Second)
		}
	}
}

func (s *filesServer) upload(c *request, create *sessionv1.CreateFileRequest, part *multipart.Part) (any, error) {
	made, err := s.blobs.CreateFile(c.R.Context(), create)
	if err != nil {
		return nil, err
	}
	if made.GetFile().GetState() == sessionv1.FileState_FILE_STATE_READY {
		return fileJSON(made.GetFile()), nil // a repetition, whose first attempt has arrived
	}
	// What an earlier attempt has brought is the beginning of the same file.
	had := made.GetFile().GetReceived()
	if _, err := io.CopyN(io.Discard, part, had); err != nil {
		return nil, problem.BodyMalformed("file", "it is shorter than what an earlier attempt has sent")
	}
	to, err := s.blobs.AppendFile(c.R.Context())
	if err != nil {
		return nil, err
	}
	start := &sessionv1.AppendFileStart{Name: made.GetFile().GetName(), Offset: had, Last: true}
	err = to.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Start{Start: start}})
	buf := make([]byte, 256<<10)
	for err == nil {
		n, bad := codec.Fill(part, buf)
		if n > 0 {
			err = to.Send(&sessionv1.AppendFileRequest{Kind: &sessionv1.AppendFileRequest_Data{Data: append([]byte{}, buf[:n]...)}})
		}
		if errors.Is(bad, io.EOF) {
			break
		}
		if bad != nil {
			return nil, problem.BodyMalformed("file", "the upload broke off")
		}
	}
	done, err := to.CloseAndRecv()
	if err != nil {
		return nil, err
	}
	return fileJSON(done.GetFile()), nil
}

func (s *filesServer) listFiles(c *request) (any, error) {
	l, err := c.list(20, 1000, false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.within(c)
	defer cancel()
	var data []any
	if scope := l.query.Get("scope_id"); scope != "" {
		session := sessionName(scope)
		got, err := s.workspaces.ListSessionArtifacts(ctx, &sessionv1.ListSessionArtifactsRequest{Parent: session, PageSize: int32(l.limit), PageToken: l.page})
		if err != nil {
			return nil, err
		}
		for _, a := range got.GetArtifacts() {
			data = append(data, outputJSON(session, a.GetPath(), a.GetSize(), a.GetMediaType(), a.GetModifyTime().AsTime()))
		}
		return page(data, got.GetNextPageToken()), nil
	}
	got, err := s.blobs.ListFiles(ctx, &sessionv1.ListFilesRequest{PageSize: int32(l.limit), PageToken: l.page})
	if err != nil {
		return nil, err
	}
	for _, f := range got.GetFiles() {
		data = append(data, fileJSON(f))
	}
	return page(data, got.GetNextPageToken()), nil
}

func (s *filesServer) getFile(c *request) (any, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	if session, where, ok := output(c.ID[0]); ok {
		got, err := s.workspaces.GetSessionFile(ctx, &sessionv1.GetSessionFileRequest{Parent: session, Path: where})
		if err != nil {
			return nil, err
		}
		return outputJSON(session, where, got.GetFile().GetSize(), "", got.GetFile().GetModifyTime().AsTime()), nil
	}
	got, err := s.blobs.GetFile(ctx, &sessionv1.GetFileRequest{Name: fileName(c.ID[0])})
	if err != nil {
		return nil, err
	}
	return fileJSON(got.GetFile()), nil
}

func (s *filesServer) deleteFile(c *request) (any, error) {
	ctx, cancel := s.within(c)
	defer cancel()
	var err error
	if session, where, ok := output(c.ID[0]); ok {
		_, err = s.workspaces.DeleteSessionFile(ctx, &sessionv1.DeleteSessionFileRequest{Parent: session, Path: where, RequestId: c.Key})
	} else {
		_, err = s.blobs.DeleteFile(ctx, &sessionv1.DeleteFileRequest{Name: fileName(c.ID[0]), RequestId: c.Key})
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": c.ID[0], "type": "file_deleted"}, nil
}

// fileContent answers with a file's bytes.
func (s *filesServer) fileContent(c *request) (any, error) {
	next, kind, name, err := s.opened(c)
	if err != nil {
		return nil, err
	}
	h := c.W.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	control := http.NewResponseController(c.W)
	for {
		data, err := next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			panic(http.ErrAbortHandler) // an answer that ends well would look whole
		}
		_ = control.SetWriteDeadline(time.Now().Add(s.wire.WriteTimeout))
		if _, err := c.W.Write(data); err != nil {
			return nil, nil //nolint:nilerr // the client has gone
		}
	}
}

// opened opens a file. Its first message describes it.
func (s *filesServer) opened(c *request) (next func() ([]byte, error), kind, name string, err error) {
	kind = "application/octet-stream"
	if session, where, ok := output(c.ID[0]); ok {
		stream, err := s.workspaces.ReadSessionFile(c.R.Context(), &sessionv1.ReadSessionFileRequest{Parent: session, Path: where})
		if err != nil {
			return nil, "", "", err
		}
		if _, err := stream.Recv(); err != nil {
			return nil, "", "", err
		}
		return func() ([]byte, error) { m, err := stream.Recv(); return m.GetData(), err }, kind, path.Base(where), nil
	}
	stream, err := s.blobs.ReadFile(c.R.Context(), &sessionv1.ReadFileRequest{Name: fileName(c.ID[0])})
	if err != nil {
		return nil, "", "", err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, "", "", err
	}
	if first.GetFile().GetMediaType() != "" {
		kind = first.GetFile().GetMediaType()
	}
	return func() ([]byte, error) { m, err := stream.Recv(); return m.GetData(), err }, kind, first.GetFile().GetFilename(), nil
}
