package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func (h *heavy) ListFiles(_ context.Context, p store.FilePage) ([]*sessionv1.File, error) {
	return rows(h, p.AfterID, p.Limit, func(id string) *sessionv1.File {
		return &sessionv1.File{Name: "files/" + id, Filename: weight(id), CreateTime: timestamppb.New(start)}
	})
}

func (h *heavy) PlaceOf(context.Context, store.Key) (store.Place, int64, error) {
	return store.Place{Made: true}, 1, nil
}

// heavySandbox has as many files, of which every fifth has a long path. Its pages end at a size, as those of the sandbox service do. The URI of a
// file is three times as long as its path.
type heavySandbox struct {
	Sandbox
	h *heavy
}

var heavyPath = strings.Repeat("ö ", 20<<10)

func (s heavySandbox) ListFiles(_ context.Context, _ remote.Place, r *sandboxv1.ListFilesRequest) (*sandboxv1.ListFilesResponse, error) {
	after := r.PageToken
	files, more, err := page.Fill(int(r.PageSize), func(last *sandboxv1.FileInfo, n int) ([]*sandboxv1.FileInfo, error) {
		if last != nil {
			after = strconv.FormatInt(last.Size, 10)
		}
		return rows(s.h, after, n, func(id string) *sandboxv1.FileInfo {
			n, _ := strconv.ParseInt(id, 10, 64)
			long := heavyPath
			if n%5 > 0 {
				long = ""
			}
			return &sandboxv1.FileInfo{Path: fmt.Sprintf("artifacts/%s%s", id, long), Size: n, Type: sandboxv1.FileType_FILE_TYPE_REGULAR}
		})
	})
	resp := &sandboxv1.ListFilesResponse{Files: files}
	if more {
		resp.NextPageToken = strconv.FormatInt(files[len(files)-1].Size, 10)
	}
	return resp, err
}
