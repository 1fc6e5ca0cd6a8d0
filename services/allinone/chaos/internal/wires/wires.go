// Package wires follows sessions through the protocols of the gateway, each as its own clients do: they lose their
// connections, come back in the way of their protocol, and reduce what they get to what a person reads.
package wires

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// ErrAgain says that a connection was lost, or that the server asks to come back.
var ErrAgain = errors.New("try again")

// Target is a session, and the ways to it.
type Target struct {
	Session string                         // as sessions/{session}
	Agent   string                         // its agent
	HTTP    string                         // the gateway
	GRPC    sessionv1.SessionServiceClient // of the gateway
	Client  *http.Client
}

// Wire is a protocol.
type Wire struct {
	Name string
	// Told says that the wire never takes back what it told: what a rewind left behind stays.
	Told bool
	// New returns a client that has seen nothing yet.
	New func(Target) Follower
}

// All has every protocol.
var All = []Wire{
	{Name: "sse", New: func(t Target) Follower { return &raw{read: t.sse} }},
	{Name: "grpc", New: func(t Target) Follower { return &raw{read: t.grpc} }},
	{Name: "websocket", New: func(t Target) Follower { return &raw{read: t.socket} }},
	{Name: "ai-sdk", New: func(t Target) Follower { return &aisdk{Target: t} }},
	{Name: "ag-ui", New: func(t Target) Follower { return &agui{Target: t} }},
	{Name: "managed", Told: true, New: func(t Target) Follower { return &managed{Target: t, at: map[string]int{}} }},
	{Name: "openai", New: func(t Target) Follower { return &openai{Target: t, turns: map[string]*watched{}} }},
	{Name: "a2a", Told: true, New: func(t Target) Follower { return &a2a{Target: t, tasks: map[string]*task{}} }},
}

// Follower is a client of a session. One goroutine uses it.
type Follower interface {
	// Follow follows over one connection until it breaks, ctx ends, or there is nothing to follow now. other chooses
	// between the ways in which clients of the wire come back. Its error is ErrAgain, or a fault.
	Follow(ctx context.Context, other bool) error
	// End returns what the client shows of a session whose log ends with a number, or ErrAgain.
	End(ctx context.Context, last int64) ([]record.Shown, error)
}

// get opens the answer to a GET.
func (t Target) get(ctx context.Context, path string, headers map[string]string) (*http.Response, error) {
	return t.open(ctx, http.MethodGet, path, http.NoBody, headers)
}

// open opens an answer. One that asks to come back later is ErrAgain.
func (t Target) open(ctx context.Context, method, path string, body io.Reader, headers map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+t.HTTP+path, body)
	if err != nil {
		return nil, err
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := t.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAgain, err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNoContent {
		return resp, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
	_ = resp.Body.Close()
	return nil, answered(resp.StatusCode, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text))
}

// answered returns the error of an answer with an HTTP status.
func answered(code int, err error) error {
	switch code {
	case http.StatusConflict, 499, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
		return fmt.Errorf("%w: %w", ErrAgain, err)
	}
	return err
}

// object reads an answer that is one JSON value.
func (t Target) object(ctx context.Context, path string, to any, headers map[string]string) error {
	resp, err := t.get(ctx, path, headers)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAgain, err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("GET %s: %w: %s", path, err, text)
	}
	return nil
}

// frame is one server-sent event.
type frame struct {
	id, kind string
	data     []byte
}

// frames reads server-sent events until see returns false, or the answer ends. One that ends by itself is ErrAgain.
func frames(body io.Reader, see func(frame) (bool, error)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	var f frame
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			f.id = string(value)
		case "event":
			f.kind = string(value)
		case "data":
			f.data = append(f.data, value...)
		case "":
			if len(lines.Bytes()) > 0 || len(f.data) == 0 {
				continue // a comment
			}
			if more, err := see(f); err != nil || !more {
				return err
			}
			f = frame{}
		}
	}
	return fmt.Errorf("%w: the answer ended: %v", ErrAgain, lines.Err()) //nolint:errorlint // it may be nil
}

// last returns the last part of a name.
func last(name string) string {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return name[i+1:]
		}
	}
	return name
}
