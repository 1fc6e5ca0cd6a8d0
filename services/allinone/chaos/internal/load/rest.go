package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// rest is the gateway.
type rest struct {
	address string
	client  *http.Client
}

func (r rest) name() string { return "http://" + r.address }

func (r rest) createSession(ctx context.Context, key string) (string, error) {
	s := &sessionv1.Session{}
	err := r.post(ctx, "/v1/sessions", "{}", key, func(b []byte) error { return protojson.Unmarshal(b, s) })
	return s.GetName(), err
}

func (r rest) createTurn(ctx context.Context, session, text string, on sessionv1.OnActive, key string) (string, error) {
	t := &sessionv1.Turn{}
	err := r.post(ctx, "/v1/"+session+"/turns", fmt.Sprintf(`{"text":%q,"on_active":%q}`, text, on), key, func(b []byte) error { return protojson.Unmarshal(b, t) })
	return t.GetName(), err
}

func (r rest) post(ctx context.Context, path, body, key string, read func([]byte) error) error {
	return r.call(ctx, http.MethodPost, path, body, key, read)
}

func (r rest) get(ctx context.Context, path string, read func([]byte) error) error {
	return r.call(ctx, http.MethodGet, path, "", "", read)
}

func (r rest) call(ctx context.Context, method, path, body, key string, read func([]byte) error) error {
	resp, err := r.do(ctx, method, path, body, "application/json", key)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", errAgain, err)
	}
	return read(text)
}

// do makes a request; an answer other than 200 is an error.
func (r rest) do(ctx context.Context, method, path, body, accept, key string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.name()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAgain, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
	_ = resp.Body.Close()
	err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	says := func(r sessionv1.ErrorReason) bool { return bytes.Contains(text, []byte(`"`+apierr.Name(r)+`"`)) }
	switch {
	case slices.ContainsFunc(refusals, says):
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	case says(rewinding):
		return nil, fmt.Errorf("%w: %w", errAgain, err)
	}
	switch resp.StatusCode {
	case http.StatusConflict, 499, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return nil, fmt.Errorf("%w: %w", errAgain, err)
	}
	return nil, err
}

func (r rest) runTurn(ctx context.Context, session, text, key string) (turn string, err error) {
	err = r.events(ctx, http.MethodPost, "/v1/"+session+"/turns:stream", fmt.Sprintf(`{"text":%q}`, text), key, func(e *sessionv1.Event) bool {
		turn = e.GetTurn()
		return false
	})
	return turn, err
}

func (r rest) follow(ctx context.Context, session string, after int64, see func(*sessionv1.Event) bool) error {
	return r.events(ctx, http.MethodGet, fmt.Sprintf("/v1/%s/events?after_seq=%d", session, after), "", "", see)
}

// events reads server-sent events.
func (r rest) events(ctx context.Context, method, path, body, key string, see func(*sessionv1.Event) bool) error {
	resp, err := r.do(ctx, method, path, body, "text/event-stream", key)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	kind, data := "", ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			kind = value
		case field == "data":
			data += value
		case lines.Text() == "" && kind == "stream.error":
			return fmt.Errorf("%w: %s", errAgain, data)
		case lines.Text() == "" && data != "":
			e := &sessionv1.Event{}
			if err := protojson.Unmarshal([]byte(data), e); err != nil {
				return fmt.Errorf("an undecodable event: %w: %s", err, data)
			}
			if !see(e) {
				return nil
			}
			kind, data = "", ""
		}
	}
	return fmt.Errorf("%w: the stream ended: %v", errAgain, lines.Err()) //nolint:errorlint // it may be nil
}
