// Package sse reads streams of tokens that contain the time at which they were
// sent: those of package provider, directly or through Fairlead.
package sse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Token is a token that was received.
type Token struct {
	Sent, Received time.Time
}

// Stream is one answer, read to its end.
type Stream struct {
	Begun   time.Time // when the request was made
	Arrived time.Time // when the model server had it
	Tokens  []Token
	Last    string    // the name of the last event
	Ended   time.Time // when the stream had ended
}

// client opens as many connections as requested and keeps them.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20_000, DisableCompression: true}}

// Open makes a request for a stream, and returns when its headers have come.
func Open(ctx context.Context, method, url, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	return resp, nil
}

// Read makes a request and reads the stream to its end. It passes every token
// to on or, if on is nil, stores it.
func Read(ctx context.Context, method, url, body string, on func(Token), header ...string) (*Stream, error) {
	s := &Stream{Begun: time.Now()}
	resp, err := Open(ctx, method, url, body, header...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	r := bufio.NewReaderSize(resp.Body, 32<<10)
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			s.line(line, on)
		case errors.Is(err, bufio.ErrBufferFull):
			// A long line is none with tokens; its rest is read as lines of nothing.
		case errors.Is(err, io.EOF):
			s.Ended = time.Now()
			return s, nil
		default:
			return s, err
		}
	}
}

// textFields are where the text of a token is, by the name of its event.
var textFields = map[string][]byte{
	"text.delta": []byte(`"text":"`), "content_block_delta": []byte(`"text":"`), "response.output_text.delta": []byte(`"delta":"`),
}

// line looks for tokens in one line of an event.
func (s *Stream) line(line []byte, on func(Token)) {
	if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
		if name = bytes.TrimSpace(name); string(name) != s.Last {
			s.Last = string(name)
		}
		return
	}
	field, token := textFields[s.Last]
	if !token || !bytes.HasPrefix(line, []byte("data: ")) {
		return
	}
	_, text, ok := bytes.Cut(line, field)
	if !ok {
		return
	}
	now := time.Now()
	text, _, _ = bytes.Cut(text, []byte(`"`))
	for word := range bytes.FieldsSeq(text) {
		arrived := word[0] == 'a'
		if arrived {
			word = word[1:]
		}
		n, err := strconv.ParseInt(string(word), 10, 64)
		switch {
		case err != nil: // not one of ours
		case arrived:
			s.Arrived = time.Unix(0, n)
		case on != nil:
			on(Token{time.Unix(0, n), now})
		default:
			s.Tokens = append(s.Tokens, Token{time.Unix(0, n), now})
		}
	}
}
