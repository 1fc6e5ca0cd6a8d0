package managed

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestAnUploadThatBreaksOffIsNoFile at any of the doors for files, however it breaks off.
func TestAnUploadThatBreaksOffIsNoFile(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"half.txt\"\r\nContent-Type: text/plain\r\n\r\nthe first half"
	for _, c := range []struct {
		path string
		more int // bytes that are announced and never come
	}{{base + "/files", 100}, {base + "/files", 0}, {"/v1/files:upload", 100}, {"/v1/files:upload", 0}} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s", c.path, strings.TrimPrefix(s.URL, "http://"), len(form)+c.more, form)
		if err != nil {
			t.Fatal(err)
		}
		if c.more > 0 {
			_ = conn.(*net.TCPConn).CloseWrite()
		} // otherwise the body ends well, and the form in it does not
		answer, _ := io.ReadAll(conn)
		_ = conn.Close()
		if !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
			t.Errorf("%s with %d bytes missing: %s", c.path, c.more, answer)
		}
	}
	if _, files := s.Call(t, "GET", "/v1/files", ""); strings.Contains(files, "READY") {
		t.Errorf("the files are %s", files)
	}
}

// TestARepeatedUploadIsItsOwnFile although another one of the same name came in between.
func TestARepeatedUploadIsItsOwnFile(t *testing.T) {
	t.Parallel()
	s := serve(t)
	upload := func(content string, header ...string) string {
		form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\n" + content + "\r\n--b--\r\n"
		code, text := s.Call(t, "POST", base+"/files", form, append([]string{"Content-Type", "multipart/form-data; boundary=b"}, header...)...)
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(text), &made); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		_, got := s.Call(t, "GET", base+"/files/"+made.ID+"/content", "")
		if got != content {
			t.Errorf("the file of %q has %q", content, got)
		}
		return made.ID
	}
	upload("one", attempts, "0")
	upload("two, whose first attempt never arrived", attempts, "1")
	if a, b := upload("three", "Idempotency-Key", "k"), upload("three", "Idempotency-Key", "k", attempts, "1"); a != b {
		t.Errorf("the files are %s and %s", a, b)
	}
}

const attempts = "X-Stainless-Retry-Count"
