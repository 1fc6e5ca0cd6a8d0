package rpc_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// refusing answers 413 after the first byte of a body, and otherwise says what it has read.
func refusing(w http.ResponseWriter, r *http.Request) {
	limit := int64(1 << 20)
	if r.URL.Path == "/none" {
		limit = 0
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, strings.Repeat("too large ", 10))
		return
	}
	_, _ = fmt.Fprintf(w, "%s has %d bytes", r.URL.Path, len(body))
}

// send writes bytes on a new connection, and returns the answers until the server closes it or has answered n requests.
func send(t *testing.T, address string, n int, parts ...[]byte) (answers []string, closed bool) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, p := range parts {
		if _, err := conn.Write(p); err != nil {
			t.Fatalf("the server stopped reading: %v", err)
		}
	}
	r := bufio.NewReader(conn)
	for range n {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the connection broke: %v", err)
			}
			return answers, true
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("an answer broke off: %v", err)
		}
		answers = append(answers, fmt.Sprint(resp.StatusCode, " ", string(body)))
		closed = resp.Close
	}
	return answers, closed
}

func TestAConnectionEndsWithARequestThatHasTwoLengths(t *testing.T) {
	r := serve(t, everywhere(), web{&part{name: "a", events: &diary{}, handler: http.HandlerFunc(refusing)}})
	defer func() { _ = r.stop() }()
	const next = "GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		request string
		answers int
	}{
		"both lengths":            {"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next, 1},
		"both, the other way":     {"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 44\r\n\r\n0\r\n\r\n" + next, 1},
		"two lengths that differ": {"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n" + next, 1},
		"HTTP/1.0 and chunked":    {"POST /a HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + next, 1},
		"an unknown encoding":     {"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n" + next, 1},
		"chunked":                 {"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" + next, 1},
		"one length":              {"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx" + next, 2},
	} {
		answers, closed := send(t, r.at["http"], 2, []byte(c.request))
		if len(answers) != c.answers || closed != (c.answers == 1) {
			t.Errorf("%s: closed %t, %q", name, closed, answers)
		}
	}
}

func TestTheAnswerToABodyThatIsTooLargeArrives(t *testing.T) {
	r := serve(t, everywhere(), web{&part{name: "a", events: &diary{}, handler: http.HandlerFunc(refusing)}})
	defer func() { _ = r.stop() }()
	body := bytes.Repeat([]byte("x"), 24<<20)
	for _, path := range []string{"/small", "/none"} {
		head := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", path, len(body))
		chunked := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", path, len(body))
		for name, parts := range map[string][][]byte{"with its length": {head, body}, "chunked": {chunked, body, []byte("\r\n0\r\n\r\n")}} {
			answers, _ := send(t, r.at["http"], 1, parts...)
			if len(answers) != 1 || answers[0] != "413 "+strings.Repeat("too large ", 10) {
				t.Errorf("%s, %s: %q", path, name, answers)
			}
		}
	}
	// A client that waits for 100 Continue sends no body, and one that leaves the body open still sees the end of the answer.
	waits := []byte("POST /none HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
	open := []byte("POST /none HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n400000\r\n" + strings.Repeat("x", 1<<20))
	if answers, _ := send(t, r.at["http"], 1, open); len(answers) != 1 || !strings.HasPrefix(answers[0], "413") {
		t.Errorf("an open body: %q", answers)
	}
	if answers, _ := send(t, r.at["http"], 1, waits); len(answers) != 1 {
		t.Errorf("a client that waits: %q", answers)
	}
}
