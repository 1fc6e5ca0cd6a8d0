package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// requestTimeout bounds every request but streams.
	requestTimeout = 30 * time.Second
	// maxAnswer bounds an answer: a page of a thousand events can be large.
	maxAnswer = 256 << 20
	// maxRetryAfter bounds how long a server can make the worker wait.
	maxRetryAfter = time.Minute
)

// api makes the calls of the wire with one credential.
type api struct {
	http   *http.Client
	base   string // ends in /v1
	token  string
	worker string // the worker's name
}

// newClient returns a client that follows no redirect: another address must get neither the key nor a session's results.
func newClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Error is an answer of the server that is not a success.
type Error struct {
	Status  int
	Message string

	retry string // the header x-should-retry
	after time.Duration
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the server answered with status %d", e.Status)
	}
	return fmt.Sprintf("the server answered with status %d: %s", e.Status, e.Message)
}

// transient reports whether the same request may succeed later.
func transient(err error) bool {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return true // the server was not reached, or did not answer
	case e.retry != "":
		return e.retry == "true"
	}
	return e.Status >= 500 || e.Status == http.StatusRequestTimeout || e.Status == http.StatusConflict || e.Status == http.StatusTooManyRequests
}

// request makes a request. The number counts how often it was tried before.
func (a *api) request(ctx context.Context, method, path string, in any, number int) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + a.token, "Accept": "application/json", "User-Agent": "fairlead-sandbox-worker",
		"Anthropic-Version": "2026-10-21", "Anthropic-Beta": "managed-agents-2026-04-01",
		"Anthropic-Worker-ID": a.worker, "X-Stainless-Retry-Count": strconv.Itoa(number),
	} {
		r.Header.Set(name, value)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.http.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer func() { _ = resp.Body.Close() }()
		return nil, refusal(resp)
	}
	return resp, nil
}

// refusal reads the answer of a request that has failed.
func refusal(resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, retry: resp.Header.Get("X-Should-Retry")}
	if ms, err := strconv.ParseFloat(resp.Header.Get("Retry-After-Ms"), 64); err == nil {
		e.after = time.Duration(ms * float64(time.Millisecond))
	} else if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil {
		e.after = time.Duration(s * float64(time.Second))
	}
	var said struct {
		Error struct{ Message string }
	}
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode < 400 {
		e.Message = "it redirects to " + strconv.Quote(to) + ", which the worker does not follow with its key: use that address as the url if you trust it"
		return e
	}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // without it the status alone is reported
	if json.Unmarshal(raw, &said) == nil {
		e.Message = said.Error.Message
	}
	return e
}

// once makes a request and reads its answer into out. An empty answer leaves out as it is.
func (a *api) once(ctx context.Context, method, path string, in, out any, number int) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := a.request(ctx, method, path, in, number)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || out == nil || len(bytes.TrimSpace(raw)) == 0 {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return &Error{Status: resp.StatusCode, Message: "its body is not what a Managed Agents server sends: is the url right?"}
	}
	return nil
}

// call makes a request, and repeats it while that can help and the context has not ended.
func (a *api) call(ctx context.Context, method, path string, in, out any) error {
	delay := growing(30 * time.Second)
	for number := 0; ; number++ {
		err := a.once(ctx, method, path, in, out, number)
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		if !pause(ctx, wait(err, delay.NextBackOff())) {
			return err
		}
	}
}

// growing returns delays from half a second on.
func growing(most time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.Multiplier, b.MaxInterval = 2, most
	return b
}

// wait returns the delay before the next try: the server's own if it names one.
func wait(err error, own time.Duration) time.Duration {
	var e *Error
	if errors.As(err, &e) && e.after > 0 {
		return min(e.after, maxRetryAfter)
	}
	return own
}

// pause waits, and reports whether the context is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// work is a work item.
type work struct {
	ID          string
	Environment string `json:"environment_id"`
	Data        struct{ Type, ID string }
	Secret      string // base64url of workSecret
}

func queuePath(environment string) string {
	return "/environments/" + url.PathEscape(environment) + "/work"
}

func (w *work) path() string { return queuePath(w.Environment) + "/" + url.PathEscape(w.ID) }

func (w *work) session() string { return "/sessions/" + url.PathEscape(w.Data.ID) }

// poll asks for a work item; nil: there is none.
func (a *api) poll(ctx context.Context, environment string) (*work, error) {
	var w *work
	if err := a.once(ctx, http.MethodGet, queuePath(environment)+"/poll?block_ms=999", nil, &w, 0); err != nil {
		return nil, err
	}
	if w == nil || w.ID == "" {
		return nil, nil //nolint:nilnil // no work is a valid answer
	}
	w.Environment = environment
	return w, nil
}

// heartbeat is the server's answer to one.
type heartbeat struct {
	State    string
	Extended bool   `json:"lease_extended"`
	TTL      int64  `json:"ttl_seconds"`
	Last     string `json:"last_heartbeat"`
}

func (a *api) beat(ctx context.Context, w *work, expected string, lease time.Duration) (heartbeat, error) {
	q := url.Values{"expected_last_heartbeat": {expected}, "desired_ttl_seconds": {strconv.Itoa(int(lease.Seconds()))}}
	var h heartbeat
	err := a.once(ctx, http.MethodPost, w.path()+"/heartbeat?"+q.Encode(), nil, &h, 0)
	return h, err
}

// stop ends the work item. One that has ended already is no error.
func (a *api) stop(ctx context.Context, w *work) error {
	err := a.call(ctx, http.MethodPost, w.path()+"/stop", map[string]any{"force": true}, nil)
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusConflict {
		return nil
	}
	return err
}

// text is a block of a result.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// toolResult is the event that answers a call.
type toolResult struct {
	Type    string `json:"type"`
	Use     string `json:"tool_use_id"`
	Content []text `json:"content"`
	IsError bool   `json:"is_error,omitempty"`
}

// answer posts the result of a call.
func (a *api) answer(ctx context.Context, w *work, use string, r result) error {
	said := r.text
	if strings.TrimSpace(said) == "" {
		said = "(no output)"
	}
	e := toolResult{"user.tool_result", use, []text{{"text", strings.ToValidUTF8(said, "\uFFFD")}}, r.failed}
	return a.call(ctx, http.MethodPost, w.session()+"/events", map[string]any{"events": []any{e}}, nil)
}
