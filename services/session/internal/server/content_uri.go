package server

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

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
)

// content returns the content of a message with the files that it names, and checks it.
func (c *Config) content(ctx context.Context, given []*commonv1.Content) ([]*commonv1.Content, error) {
	all := slices.Clone(given)
	for i, one := range all {
		m, what := mediaOf(one)
		if m.GetUri() == "" {
			continue
		}
		all[i] = proto.CloneOf(one)
		m, _ = mediaOf(all[i])
		if err := c.fetch(ctx, m, fmt.Sprintf("content[%d].%s.uri", i, what)); err != nil {
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
func (c *Config) fetch(ctx context.Context, m *commonv1.Media, field string) (err error) {
	var name, mediaType string
	if id, ok := strings.CutPrefix(m.Uri, "file://"); ok {
		name, mediaType, m.Data, err = c.fetchFile(ctx, "files/"+id, field)
	} else {
		name, m.Data, err = c.fetchWorkspace(ctx, m.Uri, field)
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
		return refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
			"The credential does not have the scope "+scope+", which reading this file needs.", apierr.Field(field, "needs the scope "+scope))
	}
	return nil
}

func tooLarge(uri, field string, size int64) error {
	return refusal.Input(field, fmt.Sprintf("%s has %d bytes; an image or a document of a message has at most %d. Put it into the workspace instead.", uri, size, media.MaxBytes))
}

// fetchFile reads a file of the user.
func (c *Config) fetchFile(ctx context.Context, name, field string) (title, mediaType string, data []byte, err error) {
	if err := mayRead(ctx, "files.read", field); err != nil {
		return "", "", nil, err
	}
	row, err := c.Files.Find(ctx, request.Caller(ctx), name)
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
	if data, err = c.Files.ReadAll(ctx, row); err != nil {
		return "", "", nil, refusal.File(err, name, "")
	}
	if mediaType = f.MediaType; mediaType == anyType {
		mediaType = ""
	}
	return f.Filename, mediaType, data, nil
}

// fetchWorkspace reads a file in the workspace of one of the caller's sessions.
func (c *Config) fetchWorkspace(ctx context.Context, uri, field string) (title string, data []byte, err error) {
	if err := mayRead(ctx, "sessions.read", field); err != nil {
		return "", nil, err
	}
	id, escaped, _ := strings.Cut(strings.TrimPrefix(uri, "workspace://"), "/")
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return "", nil, refusal.Input(field, "Its path is not escaped as in a URL.")
	}
	w, session := workspaces{c}, "sessions/"+id
	found, err := w.exists(ctx, session)
	if err == nil && !request.Caller(ctx).Sees(strings.TrimPrefix(found.User, "users/")) {
		err = refusal.SessionNotFound(session)
	}
	if err != nil {
		return "", nil, err
	}
	place, err := w.at(ctx, session)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // ends the stream in every case
	defer cancel()
	stream, err := c.Sandbox.ReadFile(ctx, in(place, session), &sandboxv1.ReadFileRequest{
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
		return "", nil, unread(err, place, session, name)
	}
	return path.Base(name), data, nil
}
