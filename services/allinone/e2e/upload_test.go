package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// uploaded is a file, as REST shows it.
type uploaded struct{ Name, Size, Received, Sha256, State, MediaType string }

func fileOf(t *testing.T, r reply) uploaded {
	t.Helper()
	var f uploaded
	if err := json.Unmarshal([]byte(r.body), &f); err != nil || r.code != http.StatusOK {
		t.Fatalf("%d %s", r.code, r.body)
	}
	return f
}

// form is a form with a file.
func form(t *testing.T, name, content string, fields ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		_ = w.WriteField(fields[i], fields[i+1])
	}
	part, err := w.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, content)
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

func TestAFileIsUploadedOnceAndReadAnywhere(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	sum := sha256.Sum256([]byte("<script>alert(1)</script>"))
	body, kind := form(t, "page.html", "<script>alert(1)</script>", "sha256", hex.EncodeToString(sum[:]))
	made := s.call(t, http.MethodPost, "/v1/files:upload", body, "Content-Type", kind, "Idempotency-Key", "k")
	f := fileOf(t, made)
	if f.State != "FILE_STATE_READY" || f.Size != "25" || f.Sha256 != hex.EncodeToString(sum[:]) {
		t.Errorf("it is %+v", f)
	}
	if again := fileOf(t, s.call(t, http.MethodPost, "/v1/files:upload", body, "Content-Type", kind, "Idempotency-Key", "k")); again.Name != f.Name {
		t.Errorf("again it is %s, want %s", again.Name, f.Name)
	}
	got := s.call(t, http.MethodGet, "/v1/"+f.Name+":content", "", "Range", "bytes=1-6")
	if got.code != http.StatusPartialContent || got.body != "script" || got.header.Get("Content-Range") != "bytes 1-6/25" ||
		got.header.Get("Content-Disposition") != "attachment; filename=page.html" || got.header.Get("X-Content-Type-Options") != "nosniff" ||
		got.header.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'; sandbox" || got.header.Get("ETag") != `"`+f.Sha256+`"` {
		t.Errorf("a part is %d %q %v", got.code, got.body, got.header)
	}
	wants(t, s.call(t, http.MethodGet, "/v1/files", ""), http.StatusOK, f.Name)
	bad, kind := form(t, "x", "y", "sha256", hex.EncodeToString(sum[:]))
	wants(t, s.call(t, http.MethodPost, "/v1/files:upload", bad, "Content-Type", kind), http.StatusBadRequest, "WRONG_CHECKSUM")
	bad, kind = form(t, "x", "y", "color", "red")
	wants(t, s.call(t, http.MethodPost, "/v1/files:upload", bad, "Content-Type", kind), http.StatusBadRequest, "BODY_MALFORMED")
	wants(t, s.call(t, http.MethodPost, "/v1/files:upload", `{}`), http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
	wants(t, s.call(t, http.MethodDelete, "/v1/"+f.Name, ""), http.StatusOK, "{}")
	wants(t, s.call(t, http.MethodGet, "/v1/"+f.Name+":content", ""), http.StatusNotFound, "FILE_NOT_FOUND")
	if r := s.call(t, http.MethodGet, "/v1/files", ""); strings.TrimSpace(r.body) != "{}" {
		t.Errorf("left are %s", r.body)
	}
}

// pixel is a PNG of one pixel.
const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB\x60\x82"

func TestAMessageNamesFilesInsteadOfTheirData(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	body, kind := form(t, "dot.png", pixel)
	image := fileOf(t, s.call(t, http.MethodPost, "/v1/files:upload", body, "Content-Type", kind))
	session := s.session(t, "coder")
	wants(t, s.call(t, http.MethodPut, "/v1/"+session+"/files/docs/the%20plan.md", "a plan"), http.StatusCreated, "plan")
	message := func(kind, uri string) string {
		return fmt.Sprintf(`{"text":"what is there","content":[{%q:{"uri":%q}}]}`, kind, uri)
	}
	frames := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", message("image", "file://"+strings.TrimPrefix(image.Name, "files/")), nil)
	last(t, frames, "COMPLETE")
	frames = s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", message("document", "workspace://"+strings.TrimPrefix(session, "sessions/")+"/docs/the%20plan.md"), nil)
	last(t, frames, "COMPLETE")
	told := s.call(t, http.MethodGet, "/v1/"+session+"/messages?pageSize=100", "").body
	for _, want := range []string{
		`"image":{"mediaType":"image/png","data":"` + base64.StdEncoding.EncodeToString([]byte(pixel)) + `","title":"dot.png"}`,
		`"data":"` + base64.StdEncoding.EncodeToString([]byte("a plan")) + `","title":"the plan.md"}`,
	} {
		if !strings.Contains(told, want) {
			t.Errorf("the conversation lacks %s", want)
		}
	}
	for uri, reason := range map[string]string{
		"file://nothing":              "FILE_NOT_FOUND",
		"workspace://nothing/a.md":    "SESSION_NOT_FOUND",
		"workspace://%s/none.md":      "FILE_NOT_FOUND",
		"workspace://%s/../../x":      "PATH_ESCAPES",
		"workspace://%s/docs":         "WRONG_FILE_TYPE",
		"https://example.com/dot.png": "content[0].image.uri",
	} {
		uri = strings.Replace(uri, "%s", strings.TrimPrefix(session, "sessions/"), 1)
		if r := s.call(t, http.MethodPost, "/v1/"+session+"/turns", message("image", uri)); r.code < 400 || r.code > 499 || !strings.Contains(r.body, reason) {
			t.Errorf("%s: %d %s", uri, r.code, r.body)
		}
	}
	wants(t, s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"content":[{"image":{"mediaType":"image/png"}}]}`), http.StatusBadRequest, "content[0].image.data")
}

// tus makes a request of the protocol of resumable uploads.
func (s *system) tus(ctx context.Context, t *testing.T, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.http+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Tus-Resumable", "1.0.0")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return resp, err
}

// stated checks the status of an answer.
func stated(t *testing.T, resp *http.Response, err error, code int) {
	t.Helper()
	if err != nil || resp.StatusCode != code || resp.Header.Get("Tus-Resumable") != "1.0.0" {
		t.Fatalf("%v, %v, want %d", resp, err, code)
	}
}

func TestAnUploadIsResumedAfterACut(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		if o.database != "" {
			o.files = "file://" + t.TempDir()
		}
		s := start(t, o)
		const size = 20 << 20
		location := s.beginUpload(t, size)
		// The body breaks off amid the second part.
		ctx, cut := context.WithCancel(t.Context())
		_, err := s.tus(ctx, t, http.MethodPatch, location, io.MultiReader(newSource(0, 11<<20), broken(cut)), "Content-Type", "application/offset+octet-stream", "Upload-Offset", "0")
		if err == nil {
			t.Fatal("the cut was not noticed")
		}
		resp, err := s.tus(t.Context(), t, http.MethodPatch, location, strings.NewReader("x"), "Content-Type", "application/offset+octet-stream", "Upload-Offset", "20971521")
		stated(t, resp, err, http.StatusConflict)
		s.offsetOf(t, location, 1)
		s.kill()
		s = s.restart(t)
		resp = s.resume(t, location, size)
		if resp.Header.Get("Upload-Offset") != strconv.Itoa(size) {
			t.Errorf("at the end the offset is %s", resp.Header.Get("Upload-Offset"))
		}
		s.downloads(t, location, size)
		resp, err = s.tus(t.Context(), t, http.MethodDelete, location, nil)
		stated(t, resp, err, http.StatusNoContent)
		resp, err = s.tus(t.Context(), t, http.MethodHead, location, nil)
		stated(t, resp, err, http.StatusNotFound)
		resp, err = s.tus(t.Context(), t, http.MethodPost, "/v1/uploads", nil, "Tus-Resumable", "0.2.0", "Upload-Length", "1")
		stated(t, resp, err, http.StatusPreconditionFailed)
		resp, err = s.tus(t.Context(), t, http.MethodOptions, "/v1/uploads", nil)
		stated(t, resp, err, http.StatusNoContent)
		if resp.Header.Get("Tus-Version") != "1.0.0" || !strings.Contains(resp.Header.Get("Tus-Extension"), "creation") {
			t.Errorf("OPTIONS: %v", resp.Header)
		}
	})
}

// beginUpload begins an upload of source's bytes.
func (s *system) beginUpload(t *testing.T, size int64) string {
	t.Helper()
	sum := sha256.New()
	_, _ = io.Copy(sum, newSource(0, size))
	resp, err := s.tus(t.Context(), t, http.MethodPost, "/v1/uploads", nil, "Upload-Length", strconv.FormatInt(size, 10),
		"Upload-Metadata", "filename "+base64.StdEncoding.EncodeToString([]byte("big.bin"))+",sha256 "+base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(sum.Sum(nil)))))
	stated(t, resp, err, http.StatusCreated)
	return resp.Header.Get("Location")
}

// offsetOf waits until a broken request is over and at least so many bytes were kept.
func (s *system) offsetOf(t *testing.T, location string, least int64) int64 {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		resp, err := s.tus(t.Context(), t, http.MethodHead, location, nil)
		stated(t, resp, err, http.StatusOK)
		n, err := strconv.ParseInt(resp.Header.Get("Upload-Offset"), 10, 64)
		if err == nil && n >= least {
			return n
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes were kept, %v", n, err)
		}
	}
}

// resume sends the rest of source's bytes, again if what the cut request brought is still being stored.
func (s *system) resume(t *testing.T, location string, size int64) *http.Response {
	t.Helper()
	for {
		offset := s.offsetOf(t, location, 0)
		resp, err := s.tus(t.Context(), t, http.MethodPatch, location, newSource(offset, size-offset), "Content-Type", "application/offset+octet-stream", "Upload-Offset", strconv.FormatInt(offset, 10))
		if err != nil || resp.StatusCode != http.StatusConflict {
			stated(t, resp, err, http.StatusNoContent)
			return resp
		}
	}
}

// downloads reads a file whole and compares it.
func (s *system) downloads(t *testing.T, location string, size int64) {
	t.Helper()
	resp := s.do(t.Context(), t, http.MethodGet, "/v1/files/"+strings.TrimPrefix(location, "/v1/uploads/")+":content", "")
	defer func() { _ = resp.Body.Close() }()
	got, want := sha256.New(), sha256.New()
	n, err := io.Copy(got, resp.Body)
	_, _ = io.Copy(want, newSource(0, size))
	if err != nil || n != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Errorf("%d bytes are read, %v", n, err)
	}
}

// source has bytes that follow from their offset.
type source struct{ at, end int64 }

func newSource(offset, size int64) *source { return &source{offset, offset + size} }

func (s *source) Read(b []byte) (int, error) {
	n := int(min(int64(len(b)), s.end-s.at))
	if n == 0 {
		return 0, io.EOF
	}
	for i := range n {
		at := s.at + int64(i)
		b[i] = byte(at) ^ byte(at>>8) ^ byte(at>>16)*31
	}
	s.at += int64(n)
	return n, nil
}

// broken is a reader that cuts the request off.
type broken func()

func (f broken) Read([]byte) (int, error) {
	f()
	return 0, io.ErrUnexpectedEOF
}

// TestAFileOfOneGigabyteNeedsLittleMemory uploads it with a cut, and reads it.
func TestAFileOfOneGigabyteNeedsLittleMemory(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it moves a gigabyte")
	s := start(t, options{})
	const small = 128 << 20
	location := s.beginUpload(t, small)
	s.resume(t, location, small)
	s.downloads(t, location, small)
	before := s.peak(t)
	const size = 1 << 30
	location = s.beginUpload(t, size)
	ctx, cut := context.WithCancel(t.Context())
	_, err := s.tus(ctx, t, http.MethodPatch, location, io.MultiReader(newSource(0, size/2), broken(cut)), "Content-Type", "application/offset+octet-stream", "Upload-Offset", "0")
	if err == nil {
		t.Fatal("the cut was not noticed")
	}
	s.resume(t, location, size)
	s.downloads(t, location, size)
	after := s.peak(t)
	t.Logf("peak memory: %d MiB after 128 MiB in and out, %d MiB after a gigabyte", before>>20, after>>20)
	if after-before > 64<<20 {
		t.Errorf("memory grew from %d to %d bytes", before, after)
	}
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the most memory that the server has had.
func (s *system) peak(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.processes[0].cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := highWater.FindSubmatch(raw)
	if m == nil {
		t.Fatalf("no high-water mark in %s", raw)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
