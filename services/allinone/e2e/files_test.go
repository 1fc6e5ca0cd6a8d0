package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// listed returns the paths of a list of files.
func (s *system) listed(t *testing.T, session, query string) string {
	t.Helper()
	r := s.call(t, http.MethodGet, "/v1/"+session+"/files"+query, "")
	var answer struct{ Files []struct{ Path string } }
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.code != http.StatusOK {
		t.Fatalf("list files: %d %s", r.code, r.body)
	}
	var paths []string
	for _, f := range answer.Files {
		paths = append(paths, f.Path)
	}
	return strings.Join(paths, " ")
}

// wants checks the status of an answer, and the reason in an error.
func wants(t *testing.T, r reply, code int, reason string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.body, reason) {
		t.Errorf("%d %s, want %d with %s", r.code, r.body, code, reason)
	}
}

// smallArchive is a gzipped tar with one file.
func smallArchive(t *testing.T, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, content)
	_, _ = w.Close(), z.Close()
	return b.String()
}

func TestPeopleAndAgentsShareTheFilesOfAWorkspace(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		at := "/v1/" + session + "/files/"
		if got := s.listed(t, session, ""); got != "" {
			t.Errorf("a session without a workspace has %q", got)
		}
		wants(t, s.call(t, http.MethodGet, at+"a.txt", ""), http.StatusNotFound, "FILE_NOT_FOUND")

		first := s.call(t, http.MethodPut, at+"a.txt", "mine\n", "Content-Type", "text/plain", "Idempotency-Key", "k1", "If-None-Match", "*")
		wants(t, first, http.StatusCreated, `"path":"a.txt"`)
		wants(t, s.call(t, http.MethodPut, at+"a.txt", "mine\n", "Idempotency-Key", "k1", "If-None-Match", "*"), http.StatusCreated, "a.txt")
		wants(t, s.call(t, http.MethodPut, at+"a.txt", "other", "Idempotency-Key", "k1", "If-None-Match", "*"), http.StatusConflict, "REQUEST_ID_REUSED")
		wants(t, s.call(t, http.MethodPut, at+"a.txt", "x", "If-None-Match", "*"), http.StatusPreconditionFailed, "FILE_EXISTS")
		wants(t, s.call(t, http.MethodPut, at+"a.txt", "x", "If-Match", `"1-2"`), http.StatusPreconditionFailed, "ETAG_MISMATCH")
		wants(t, s.call(t, http.MethodPut, at+"%2e%2e%2foutside", "x"), http.StatusBadRequest, "PATH_ESCAPES")

		said := last(t, s.turn(t, session, "what is there"), "COMPLETE").field("turnFinished", "finalText")
		if !strings.HasPrefix(said, "a.txt\n") || !strings.HasSuffix(strings.TrimSpace(said), "mine") {
			t.Errorf("the agent sees %q", said)
		}
		s.readsParts(t, at+"a.txt", first.header.Get("ETag"))

		wants(t, s.call(t, http.MethodPost, "/v1/"+session+"/files:move", `{"path":"a.txt","newPath":"d/<b>.html"}`), http.StatusOK, "d/")
		page := s.call(t, http.MethodGet, at+"d/%3Cb%3E.html", "")
		if page.body != "mine\n" || page.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(page.header.Get("Content-Disposition"), "attachment") ||
			!strings.HasSuffix(page.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("a page is answered as %v", page.header)
		}
		archive := s.call(t, http.MethodGet, "/v1/"+session+"/files:archive?path=d&format=tar", "")
		if h, err := tar.NewReader(strings.NewReader(archive.body)).Next(); err != nil || h.Name != "<b>.html" {
			t.Errorf("the archive begins with %v, %v", h, err)
		}
		packed := smallArchive(t, "src/main.go", "package main\n")
		wants(t, s.call(t, http.MethodPost, "/v1/"+session+"/files:unpack?path=in/app", packed, "Content-Type", "application/gzip"), http.StatusOK, "in/app")
		wants(t, s.call(t, http.MethodPost, "/v1/"+session+"/files:unpack?path=in/app", packed, "Content-Type", "application/gzip"), http.StatusConflict, "FILE_EXISTS")
		wants(t, s.call(t, http.MethodPost, "/v1/"+session+"/files:unpack?path=in/b", packed, "Content-Type", "application/zip"), http.StatusBadRequest, "BAD_ARCHIVE")
		evil := smallArchive(t, "../x", "x")
		wants(t, s.call(t, http.MethodPost, "/v1/"+session+"/files:unpack?path=in/b&format=tar.gz", evil, "Content-Type", "application/octet-stream"), http.StatusBadRequest, "BAD_ARCHIVE")
		if got := s.listed(t, session, "?path=in&recursive=true"); got != "in/app in/app/src in/app/src/main.go" {
			t.Errorf("there is %q", got)
		}
		wants(t, s.call(t, http.MethodDelete, at+"in", ""), http.StatusBadRequest, "DIRECTORY_NOT_EMPTY")
		wants(t, s.call(t, http.MethodDelete, at+"in?recursive=true", ""), http.StatusOK, "{}")
		if got := s.listed(t, session, ""); got != "artifacts d mnt repos uploads workflows" {
			t.Errorf("there is %q", got)
		}
	})
}

// readsParts reads parts of a file that has `mine` in a line.
func (s *system) readsParts(t *testing.T, path, etag string) {
	t.Helper()
	for _, c := range []struct {
		header       []string
		code         int
		body, ranges string
	}{
		{[]string{"Range", "bytes=1-2"}, http.StatusPartialContent, "in", "bytes 1-2/5"},
		{[]string{"Range", "bytes=-2"}, http.StatusPartialContent, "e\n", "bytes 3-4/5"},
		{[]string{"Range", "bytes=2-", "If-Range", etag}, http.StatusPartialContent, "ne\n", "bytes 2-4/5"},
		{[]string{"Range", "bytes=2-", "If-Range", `"other"`}, http.StatusOK, "mine\n", ""},
		{[]string{"If-None-Match", etag}, http.StatusNotModified, "", ""},
	} {
		if r := s.call(t, http.MethodGet, path, "", c.header...); r.code != c.code || r.body != c.body || r.header.Get("Content-Range") != c.ranges || r.header.Get("ETag") != etag {
			t.Errorf("%q: %d %q %v", c.header, r.code, r.body, r.header)
		}
	}
	wants(t, s.call(t, http.MethodGet, path, "", "Range", "bytes=9-"), http.StatusRequestedRangeNotSatisfiable, "BAD_RANGE")
	wants(t, s.call(t, http.MethodGet, path, "", "If-Match", `"other"`), http.StatusPreconditionFailed, "PRECONDITION_FAILED")
	if r := s.call(t, http.MethodHead, path, ""); r.code != http.StatusOK || r.header.Get("Content-Length") != "5" || r.body != "" {
		t.Errorf("HEAD: %d %q %v", r.code, r.body, r.header)
	}
}

// TestFilesAreWrittenWhileATurnRuns sends a file in pieces, and a turn begins amid it.
func TestFilesAreWrittenWhileATurnRuns(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	session := s.session(t, "coder")
	read, write := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.http+"/v1/"+session+"/files/big", read)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusCreated {
				t.Errorf("status %d", resp.StatusCode)
			}
		}
		done <- err
	}()
	piece := bytes.Repeat([]byte("x"), 1<<20)
	_, _ = write.Write(piece)
	s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"sleep"}`, func(f frame) bool { // another holder has the session now
		return f.event != "tool_call.progress" && f.event != "tool_call.decision"
	})
	wants(t, s.call(t, http.MethodPut, "/v1/"+session+"/files/small", "x"), http.StatusCreated, "small")
	_, _ = write.Write(piece)
	_ = write.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r := s.call(t, http.MethodHead, "/v1/"+session+"/files/big", ""); r.header.Get("Content-Length") != "2097152" {
		t.Errorf("the file has %v", r.header)
	}
	wants(t, s.call(t, http.MethodPost, "/v1/"+session+":interrupt", `{}`), http.StatusOK, "turn")
}

func TestTheArtifactsOfATurnAreTold(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		id := strings.TrimPrefix(session, "sessions/")
		wants(t, s.call(t, http.MethodGet, "/v1/"+session+"/artifacts", ""), http.StatusOK, "{}")
		wants(t, s.call(t, http.MethodPut, "/v1/"+session+"/files/artifacts/mine.txt", "mine"), http.StatusCreated, "mine")
		told := func(frames []frame) (all []string) {
			last(t, frames, "COMPLETE")
			for _, f := range frames {
				if f.event == "artifacts.changed" {
					all = append(all, f.data)
				}
			}
			return all
		}
		first := told(s.turn(t, session, "make a report"))
		if len(first) != 1 || !strings.Contains(first[0], `"path":"artifacts/old.txt"`) || !strings.Contains(first[0], `"uri":"workspace://`+id+`/artifacts/the%20report.md"`) ||
			strings.Contains(first[0], "mine.txt") || strings.Contains(first[0], "beside") {
			t.Errorf("the first turn tells %v", first)
		}
		if quiet := told(s.turn(t, session, "what is there")); len(quiet) != 0 {
			t.Errorf("a turn that makes none tells %v", quiet)
		}
		all := s.call(t, http.MethodGet, "/v1/"+session+"/artifacts", "").body
		for _, want := range []string{"artifacts/mine.txt", "artifacts/old.txt", "artifacts/the report.md", `"mediaType":"text/plain; charset=utf-8"`} {
			if !strings.Contains(all, want) {
				t.Errorf("the list lacks %s: %s", want, all)
			}
		}
	})
}
