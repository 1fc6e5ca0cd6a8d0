package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// rel makes a path relative to the workspace, or refuses it.
func rel(p string) (string, error) {
	if path.IsAbs(p) {
		clean := path.Clean(p)
		if clean != "/workspace" && !strings.HasPrefix(clean, "/workspace/") {
			return "", Refuse(codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_PATH_ESCAPES, "the path leads outside the workspace", nil)
		}
		p = strings.TrimPrefix(strings.TrimPrefix(clean, "/workspace"), "/")
	}
	p = path.Clean(p)
	if p == ".." || strings.HasPrefix(p, "../") {
		return "", Refuse(codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_PATH_ESCAPES, "the path leads outside the workspace", nil)
	}
	return p, nil
}

// below lists the paths of a session, sorted.
func (s *Sandbox) below(prefix string) []string {
	var paths []string
	for name := range s.files {
		if p, ok := strings.CutPrefix(name, prefix); ok {
			paths = append(paths, p)
		}
	}
	sort.Strings(paths)
	return paths
}

// lookup finds a file. It is called with the lock held.
func (s *Sandbox) lookup(prefix, p string) (string, []byte, error) {
	p, err := rel(p)
	if err != nil {
		return "", nil, err
	}
	if b, ok := s.files[prefix+p]; ok {
		return p, b, nil
	}
	for _, other := range s.below(prefix) {
		if p == "." || strings.HasPrefix(other, p+"/") {
			return p, nil, Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE, "it is a directory", nil)
		}
	}
	return p, nil, Refuse(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND, "there is no such file", nil)
}

// ReadFile implements FileService.
func (s *Sandbox) ReadFile(q *sandboxv1.ReadFileRequest, stream grpc.ServerStreamingServer[sandboxv1.ReadFileResponse]) error {
	s.mu.Lock()
	tenant, err := s.enter(stream.Context(), nil)
	var name string
	var data []byte
	if err == nil {
		name, data, err = s.lookup(tenant+"/"+q.GetSession()+"/", q.GetPath())
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	send := []*sandboxv1.ReadFileResponse{{Kind: &sandboxv1.ReadFileResponse_File{File: &sandboxv1.FileInfo{Path: name, Size: int64(len(data))}}}}
	if q.GetBytes() != nil && int64(len(data)) > q.GetBytes().GetLimit() {
		data = data[:q.GetBytes().GetLimit()]
	}
	end := &sandboxv1.ReadFileEnd{}
	if l := q.GetLines(); l != nil {
		data, end = lines(data, l)
	}
	for len(data) > 0 {
		n := min(len(data), 64<<10)
		send = append(send, &sandboxv1.ReadFileResponse{Kind: &sandboxv1.ReadFileResponse_Data{Data: data[:n]}})
		data = data[n:]
	}
	if q.GetLines() != nil {
		send = append(send, &sandboxv1.ReadFileResponse{Kind: &sandboxv1.ReadFileResponse_End{End: end}})
	}
	for _, m := range send {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return nil
}

func lines(data []byte, q *sandboxv1.LineRange) ([]byte, *sandboxv1.ReadFileEnd) {
	var out bytes.Buffer
	end := &sandboxv1.ReadFileEnd{}
	n := int64(0)
	for line := range bytes.Lines(data) {
		if n++; n < q.GetFirst() {
			continue
		}
		if end.GetLines() == q.GetCount() || int64(out.Len()) >= q.GetMaxBytes() {
			end.More = true
			break
		}
		if int64(len(line)) > q.GetMaxLineBytes() {
			line = append(line[:q.GetMaxLineBytes():q.GetMaxLineBytes()], '\n')
			end.CutLines++
		}
		out.Write(line)
		end.Lines++
	}
	return out.Bytes(), end
}

// once makes a change once per call id. It is called with the lock held.
func once[T any](s *Sandbox, tenant string, c *commonv1.CallRef, change func() (T, error)) (T, error) {
	key := tenant + "/" + c.GetCallId()
	if s.marks[key] {
		var none T
		return none, Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED, "the call was cancelled", nil)
	}
	if was, ok := s.done[key].(T); ok {
		return was, nil
	}
	answer, err := change()
	if err == nil {
		s.done[key] = answer
		s.changes[c.GetCallId()]++
	}
	return answer, err
}

// WriteFile implements FileService.
func (s *Sandbox) WriteFile(stream grpc.ClientStreamingServer[sandboxv1.WriteFileRequest, sandboxv1.WriteFileResponse]) error {
	var start *sandboxv1.WriteFileStart
	var data []byte
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if m.GetStart() != nil {
			start = m.GetStart()
		}
		data = append(data, m.GetData()...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tenant, err := s.enter(stream.Context(), start.GetCall())
	if err != nil {
		return err
	}
	answer, err := once(s, tenant, start.GetCall(), func() (*sandboxv1.WriteFileResponse, error) {
		name, err := rel(start.GetPath())
		if err != nil {
			return nil, err
		}
		key := tenant + "/" + start.GetCall().GetSession() + "/" + name
		_, there := s.files[key]
		s.files[key] = data
		return &sandboxv1.WriteFileResponse{File: &sandboxv1.FileInfo{Path: name}, Created: !there}, nil
	})
	if err != nil {
		return err
	}
	return stream.SendAndClose(answer)
}

// EditFile implements FileService.
func (s *Sandbox) EditFile(ctx context.Context, q *sandboxv1.EditFileRequest) (*sandboxv1.EditFileResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tenant, err := s.enter(ctx, q.GetCall())
	if err != nil {
		return nil, err
	}
	return once(s, tenant, q.GetCall(), func() (*sandboxv1.EditFileResponse, error) {
		prefix := tenant + "/" + q.GetCall().GetSession() + "/"
		name, data, err := s.lookup(prefix, q.GetPath())
		creates := q.GetEdits()[0].GetOldText() == ""
		if err != nil && !creates {
			return nil, err
		}
		if creates && len(data) > 0 {
			return nil, Refuse(codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_FILE_EXISTS, "the file exists", nil)
		}
		answer := &sandboxv1.EditFileResponse{File: &sandboxv1.FileInfo{Path: name}, SnippetFirstLine: 1}
		text := string(data)
		for i, e := range q.GetEdits() {
			n := strings.Count(text, e.GetOldText())
			index := map[string]string{"index": strconv.Itoa(i), "found": strconv.Itoa(n)}
			switch {
			case i == 0 && creates:
				text = e.GetNewText()
			case n == 0:
				return nil, Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_EDIT_NO_MATCH, "no match", index)
			case n > 1 && !e.GetReplaceAll():
				return nil, Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_EDIT_NOT_UNIQUE, "not unique", index)
			default:
				text = strings.ReplaceAll(text, e.GetOldText(), e.GetNewText())
			}
			answer.Replacements = append(answer.Replacements, int32(max(n, 1)))
		}
		s.files[prefix+name] = []byte(text)
		answer.Snippet = text
		return answer, nil
	})
}

// ResolvePath implements FileService: there are no links.
func (s *Sandbox) ResolvePath(ctx context.Context, q *sandboxv1.ResolvePathRequest) (*sandboxv1.ResolvePathResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.enter(ctx, nil); err != nil {
		return nil, err
	}
	name, err := rel(q.GetPath())
	return &sandboxv1.ResolvePathResponse{Path: name}, err
}

// GlobFiles implements FileService.
func (s *Sandbox) GlobFiles(ctx context.Context, q *sandboxv1.GlobFilesRequest) (*sandboxv1.GlobFilesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tenant, err := s.enter(ctx, nil)
	if err != nil {
		return nil, err
	}
	root, err := rel(q.GetPath())
	if err != nil {
		return nil, err
	}
	if !doublestar.ValidatePattern(q.GetPattern()) {
		return nil, Refuse(codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_PATTERN, "the pattern is not valid", nil)
	}
	answer := &sandboxv1.GlobFilesResponse{}
	for _, p := range s.below(tenant + "/" + q.GetSession() + "/") {
		if ignored(q.GetDenied(), p) {
			answer.LeftOut = true
		} else if doublestar.MatchUnvalidated(path.Join(root, q.GetPattern()), p) {
			answer.Files = append(answer.Files, &sandboxv1.FileInfo{Path: p})
		}
	}
	return answer, nil
}

// GrepFiles implements FileService.
func (s *Sandbox) GrepFiles(q *sandboxv1.GrepFilesRequest, stream grpc.ServerStreamingServer[sandboxv1.GrepFilesResponse]) error {
	s.mu.Lock()
	answer, err := s.grep(stream.Context(), q)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return stream.Send(answer)
}

func (s *Sandbox) grep(ctx context.Context, q *sandboxv1.GrepFilesRequest) (*sandboxv1.GrepFilesResponse, error) {
	tenant, err := s.enter(ctx, nil)
	if err != nil {
		return nil, err
	}
	root, err := rel(q.GetPath())
	if err != nil {
		return nil, err
	}
	pattern := q.GetPattern()
	if q.GetIgnoreCase() {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, Refuse(codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_PATTERN, "the pattern is not valid: "+err.Error(), nil)
	}
	answer := &sandboxv1.GrepFilesResponse{}
	prefix := tenant + "/" + q.GetSession() + "/"
	for _, p := range s.below(prefix) {
		inside := root == "." || p == root || strings.HasPrefix(p, root+"/")
		if !inside || q.GetGlob() != "" && !doublestar.MatchUnvalidated(q.GetGlob(), p) && !doublestar.MatchUnvalidated(q.GetGlob(), path.Base(p)) {
			continue
		}
		if ignored(q.GetDenied(), p) {
			answer.LeftOut = true
			continue
		}
		answer.Matches = append(answer.Matches, grepFile(re, q, p, s.files[prefix+p])...)
	}
	if limit := int(q.GetMaxLines()); len(answer.GetMatches()) > limit {
		answer.Matches, answer.Truncated = answer.GetMatches()[:limit], true
	}
	return answer, nil
}

func grepFile(re *regexp.Regexp, q *sandboxv1.GrepFilesRequest, p string, data []byte) []*sandboxv1.GrepMatch {
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	shown := map[int]bool{} // whether the line is only context
	hits := int64(0)
	for i, line := range all {
		if !re.MatchString(line) {
			continue
		}
		hits++
		for j := max(0, i-int(q.GetBefore())); j <= min(len(all)-1, i+int(q.GetAfter())); j++ {
			shown[j] = shown[j] && j != i || j != i && !re.MatchString(all[j])
		}
	}
	switch {
	case hits == 0:
		return nil
	case q.GetMode() == sandboxv1.GrepMode_GREP_MODE_FILES:
		return []*sandboxv1.GrepMatch{{Path: p}}
	case q.GetMode() == sandboxv1.GrepMode_GREP_MODE_COUNT:
		return []*sandboxv1.GrepMatch{{Path: p, Count: hits}}
	}
	var matches []*sandboxv1.GrepMatch
	for i, line := range all {
		if context, ok := shown[i]; ok {
			matches = append(matches, &sandboxv1.GrepMatch{Path: p, Line: int64(i + 1), Text: []byte(line), Context: context})
		}
	}
	return matches
}

// ListFiles implements FileService.
func (s *Sandbox) ListFiles(ctx context.Context, q *sandboxv1.ListFilesRequest) (*sandboxv1.ListFilesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tenant, err := s.enter(ctx, nil)
	if err != nil {
		return nil, err
	}
	dir, err := rel(q.GetPath())
	if err != nil {
		return nil, err
	}
	prefix := tenant + "/" + q.GetSession() + "/"
	if _, ok := s.files[prefix+dir]; ok {
		return nil, Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE, "it is not a directory", nil)
	}
	answer := &sandboxv1.ListFilesResponse{}
	seen := map[string]bool{}
	for _, p := range s.below(prefix) {
		rest, ok := strings.CutPrefix(p, dir+"/")
		if dir == "." {
			rest, ok = p, true
		}
		name, _, isDir := strings.Cut(rest, "/")
		if !ok || seen[name] || ignored(q.GetIgnore(), name) {
			continue
		}
		if ignored(q.GetDenied(), path.Join(dir, name)) {
			answer.LeftOut = true
			continue
		}
		seen[name] = true
		f := &sandboxv1.FileInfo{Path: path.Join(dir, name), Type: sandboxv1.FileType_FILE_TYPE_REGULAR}
		if isDir {
			f.Type = sandboxv1.FileType_FILE_TYPE_DIRECTORY
		}
		answer.Files = append(answer.Files, f)
	}
	if len(seen) == 0 && dir != "." {
		return nil, Refuse(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND, "there is no such directory", nil)
	}
	if n := int(q.GetPageSize()); n > 0 && len(answer.GetFiles()) > n {
		answer.Files, answer.NextPageToken = answer.GetFiles()[:n], "more"
	}
	return answer, nil
}

func ignored(globs []string, name string) bool {
	for _, g := range globs {
		if doublestar.MatchUnvalidated(g, name) {
			return true
		}
	}
	return false
}
