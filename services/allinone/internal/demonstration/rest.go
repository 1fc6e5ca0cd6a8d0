package demonstration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// maxAnswer bounds what is read of an answer, and of one event, in bytes.
const maxAnswer = 32 << 20

// rest is a client of the REST API that uses none of our packages, like any
// user's client.
type rest struct {
	client *http.Client
	url    string
}

// post sends a body and returns the answer, which is no error.
func (r rest) post(ctx context.Context, path, accept string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = resp.Body.Close() }()
		var problem struct{ Message string }
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		_ = json.Unmarshal(data, &problem)
		return nil, fmt.Errorf("POST %s: %s: %s", path, resp.Status, problem.Message)
	}
	return resp, nil
}

// createSession makes a session and returns its name.
func (r rest) createSession(ctx context.Context, agent string) (string, error) {
	resp, err := r.post(ctx, "/v1/sessions", "application/json", map[string]string{"agent": agent})
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var session struct{ Name string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&session); err != nil {
		return "", fmt.Errorf("POST /v1/sessions: %w", err)
	}
	return session.Name, nil
}

// runTurn runs a turn and calls see with its events.
func (r rest) runTurn(ctx context.Context, session, text string, see func(*sessionv1.Event)) (*sessionv1.TurnFinished, error) {
	resp, err := r.post(ctx, "/v1/"+session+"/turns:stream", "text/event-stream", map[string]string{"text": text})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var end *sessionv1.TurnFinished
	err = readEvents(resp.Body, func(name, data string) error {
		if name == "error" { // both an event and, without an id, the stream's own failure
			var problem struct{ Message string }
			if json.Unmarshal([]byte(data), &problem) == nil && problem.Message != "" {
				return fmt.Errorf("the stream broke off: %s", problem.Message)
			}
		}
		e := &sessionv1.Event{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(data), e); err != nil {
			return fmt.Errorf("event %s: %w", name, err)
		}
		see(e)
		end = e.GetTurnFinished()
		return nil
	})
	if err == nil && end == nil {
		err = errors.New("the stream ended before the turn")
	}
	return end, err
}

// readEvents takes server-sent events apart.
func readEvents(in io.Reader, see func(name, data string) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxAnswer)
	var name string
	var data []string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if data != nil {
				if err := see(name, strings.Join(data, "\n")); err != nil {
					return err
				}
			}
			name, data = "", nil
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		}
	}
	return lines.Err()
}
