// Package artifact describes the files below the folder `artifacts` of a workspace, in which an agent puts the
// results of its work.
package artifact

import (
	"mime"
	"net/url"
	"path"
	"strings"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Folder is the path of the folder in a workspace.
const Folder = "artifacts"

// Of returns the regular files of a list as artifacts of `sessions/{session}`.
func Of(session string, files []*sandboxv1.FileInfo) (all []*sessionv1.Artifact) {
	for _, f := range files {
		if f.GetType() != sandboxv1.FileType_FILE_TYPE_REGULAR {
			continue
		}
		a := &sessionv1.Artifact{
			Path: f.GetPath(), Size: f.GetSize(), MediaType: mime.TypeByExtension(path.Ext(f.GetPath())), Etag: f.GetEtag(),
			Uri: URI(session, f.GetPath()), ModifyTime: f.GetModifyTime(),
		}
		if a.MediaType == "" {
			a.MediaType = "application/octet-stream"
		}
		all = append(all, a)
	}
	return all
}

// URI returns the name of a file in the workspace of `sessions/{session}` for messages.
func URI(session, name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "workspace://" + strings.TrimPrefix(session, "sessions/") + "/" + strings.Join(parts, "/")
}
