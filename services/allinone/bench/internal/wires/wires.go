// Package wires reads the tokens of package provider from the protocols of the gateway.
package wires

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

// Token is a token that was received.
type Token struct{ Sent, Received time.Time }

// client opens as many connections as requested and keeps them.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20_000, DisableCompression: true}}

// errEnded says that a stream ended by itself.
var errEnded = errors.New("the stream has ended")

// tokens finds the tokens of one stream. Each counts once: some protocols say the whole text again at the end.
type tokens struct {
	field []byte // that begins the text
	last  int64
	on    func(Token)
}

func (t *tokens) read(line []byte) {
	_, text, ok := bytes.Cut(line, t.field)
	if !ok {
		return
	}
	now := time.Now()
	text, _, _ = bytes.Cut(text, []byte(`"`))
	for word := range bytes.FieldsSeq(text) {
		n, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil || n <= t.last || n < 1e18 { // a smaller number is of the plan
			continue
		}
		t.last = n
		t.on(Token{time.Unix(0, n), now})
	}
}

// Lines reads server-sent events until they or ctx end. A protocol that has no stream yet is asked again. It calls
// opened once.
func Lines(ctx context.Context, url, field string, opened func(), on func(Token)) error {
	t := tokens{field: []byte(field), on: on}
	told := false
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "text/event-stream")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode == http.StatusOK {
			if !told {
				told = true
				opened()
			}
			if err := lines(resp.Body, &t); !errors.Is(err, errEnded) || t.last > 0 {
				return err
			}
			resp.StatusCode = http.StatusNoContent // the turn has not begun
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			return fmt.Errorf("GET %s: %s: %s", url, resp.Status, text)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func lines(body io.ReadCloser, t *tokens) error {
	defer func() { _ = body.Close() }()
	r := bufio.NewReaderSize(body, 4<<10)
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull): // a long line is none with a token
			t.read(line)
		case errors.Is(err, io.EOF):
			return errEnded
		default:
			return err
		}
	}
}

// Socket reads the messages of a WebSocket until it or ctx ends. It calls opened once.
func Socket(ctx context.Context, url string, opened func(), on func(Token)) error {
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // the library closes it
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	opened()
	t := tokens{field: []byte(`"text":"`), on: on}
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		t.read(data)
	}
}
