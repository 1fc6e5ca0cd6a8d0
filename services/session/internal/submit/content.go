package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
)

// Content returns the content of a message with the files that it names, and checks it.
func (s *Submitter) Content(ctx context.Context, given []*commonv1.Content) ([]*commonv1.Content, error) {
	all := slices.Clone(given)
	for i, one := range all {
		m, what := mediaOf(one)
		if m.GetUri() == "" {
			continue
		}
		all[i] = proto.CloneOf(one)
		m, _ = mediaOf(all[i])
		if err := s.fetch(ctx, m, fmt.Sprintf("content[%d].%s.uri", i, what)); err != nil {
			return nil, err
		}
	}
	return all, checkContent(all)
}

// mediaOf returns the image or document of content; nil for text.
func mediaOf(c *commonv1.Content) (m *commonv1.Media, what string) {
	if m = c.GetImage(); m != nil {
		return m, "image"
	}
	return c.GetDocument(), "document"
}

// fetch replaces the uri of m, whose field in the request is given, by the data there.
func (s *Submitter) fetch(ctx context.Context, m *commonv1.Media, field string) (err error) {
	var name, mediaType string
	if id, ok := strings.CutPrefix(m.Uri, "file://"); ok {
		name, mediaType, m.Data, err = s.fetchFile(ctx, "files/"+id, field)
	} else {
		name, m.Data, err = s.fetchWorkspace(ctx, m.Uri, field)
		mediaType = mime.TypeByExtension(path.Ext(name))
	}
	if err != nil {
		return err
	}
	if len(m.Data) == 0 {
		return refusal.Input(field, m.Uri+" is empty.")
	}
	m.MediaType = cmp.Or(m.MediaType, mediaType, media.Type(m.Data))
	if runes := []rune(name); m.Title == "" {
		m.Title = string(runes[:min(len(runes), 256)])
	}
	m.Uri = ""
	return nil
}

// mayRead refuses credentials that are limited to other scopes.
func mayRead(ctx context.Context, scope, field string) error {
	if !request.Caller(ctx).Allows(scope) {
		return refusal.BeyondScope(scope, field)
	}
	return nil
}

func tooLarge(uri, field string, size int64) error {
	return refusal.Input(field, fmt.Sprintf("%s has %d bytes; an image or a document of a message has at most %d. Put it into the workspace instead.", uri, size, media.MaxBytes))
}

// fetchFile reads a file of the user.
func (s *Submitter) fetchFile(ctx context.Context, name, field string) (title, mediaType string, data []byte, err error) {
	if err := mayRead(ctx, "files.read", field); err != nil {
		return "", "", nil, err
	}
	row, err := s.Files.Find(ctx, request.Caller(ctx), name)
	if err != nil {
		return "", "", nil, refusal.File(err, name, "")
	}
	f := row.File
	switch {
	case f.State != sessionv1.FileState_FILE_STATE_READY:
		return "", "", nil, refusal.FileNotComplete(f)
	case f.GetSize() > media.MaxBytes:
		return "", "", nil, tooLarge(name, field, f.GetSize())
	}
	if data, err = s.Files.ReadAll(ctx, row); err != nil {
		return "", "", nil, refusal.File(err, name, "")
	}
	if mediaType = f.MediaType; mediaType == blob.AnyType {
		mediaType = ""
	}
	return f.Filename, mediaType, data, nil
}

// fetchWorkspace reads a file in the workspace of one of the caller's sessions.
func (s *Submitter) fetchWorkspace(ctx context.Context, uri, field string) (title string, data []byte, err error) {
	if err := mayRead(ctx, "sessions.read", field); err != nil {
		return "", nil, err
	}
	id, escaped, _ := strings.Cut(strings.TrimPrefix(uri, "workspace://"), "/")
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return "", nil, refusal.Input(field, "Its path is not escaped as in a URL.")
	}
	session := "sessions/" + id
	found, err := s.Workspaces.Owned(ctx, session)
	if err == nil && !request.Caller(ctx).Sees(strings.TrimPrefix(found.User, "users/")) {
		err = refusal.SessionNotFound(session)
	}
	if err != nil {
		return "", nil, err
	}
	place, err := s.Workspaces.At(ctx, session)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // ends the stream in every case
	defer cancel()
	stream, err := s.Workspaces.Sandbox.ReadFile(ctx, placement.In(place, session), &sandboxv1.ReadFileRequest{
		Path: name, Range: &sandboxv1.ReadFileRequest_Bytes{Bytes: &sandboxv1.ByteRange{Limit: media.MaxBytes + 1}},
	})
	for err == nil {
		var piece *sandboxv1.ReadFileResponse
		if piece, err = stream.Recv(); err == nil {
			data = append(data, piece.GetData()...)
		}
		if size := piece.GetFile().GetSize(); size > media.MaxBytes {
			return "", nil, tooLarge(uri, field, size)
		}
	}
	if !errors.Is(err, io.EOF) {
		return "", nil, placement.Unread(err, place, session, name)
	}
	return path.Base(name), data, nil
}

// checkContent refuses images and documents that no model provider accepts. A
// conversation that has one would send it with each of its requests.
func checkContent(content []*commonv1.Content) error {
	count, together := 0, 0
	for i, c := range content {
		var m *commonv1.Media
		var err error
		what := "image"
		switch k := c.GetKind().(type) {
		case *commonv1.Content_Image:
			m = k.Image
			_, err = media.Image(m.GetMediaType(), m.GetData())
		case *commonv1.Content_Document:
			m, what = k.Document, "document"
			err = media.Document(m.GetMediaType(), m.GetData())
		case *commonv1.Content_Audio, *commonv1.Content_Resource, *commonv1.Content_ResourceLink:
			return refusal.Input(fmt.Sprintf("content[%d]", i), "A message has texts, images and documents; only results of tools have sound and resources.")
		default:
			continue
		}
		var fault *media.Error
		if errors.As(err, &fault) {
			return refusal.Input(fmt.Sprintf("content[%d].%s.%s", i, what, fault.Field), fmt.Sprintf("The %s %s.", what, fault.Problem))
		}
		count, together = count+1, together+len(m.GetData())
	}
	switch {
	case count > media.MaxCount:
		return refusal.Input("content", fmt.Sprintf("The message has %d images and documents; the most is %d. Send the others in messages of their own.", count, media.MaxCount))
	case together > media.MaxTogether:
		return refusal.Input("content", fmt.Sprintf("The images and documents of the message have %d bytes together; the most is %d. Make them smaller, or send some in messages of their own.", together, media.MaxTogether))
	}
	return nil
}
