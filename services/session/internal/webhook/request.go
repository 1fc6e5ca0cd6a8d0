// Package webhook tells other systems that turns have ended. It signs a message
// as the Standard Webhooks specification says and sends it to an address that a
// client has named, which is why it sends only to public addresses.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

const (
	// sendTimeout bounds an attempt, from the name's resolution to the answer's end.
	sendTimeout = 15 * time.Second
	// maxAnswer bounds how much of an answer is read, in bytes, so that the
	// connection can be reused; the answer is discarded.
	maxAnswer = 16 << 10
	// finished is the type of the only kind of message.
	finished = "turn.finished"
)

// sender sends single messages. It may be used concurrently.
type sender struct {
	client http.Client
	agent  string
}

func newSender(c Config, version string) *sender {
	dialer := &net.Dialer{Timeout: sendTimeout}
	if !c.AllowPrivate {
		dialer.Control = control
	}
	return &sender{
		agent: "Fairlead/" + version,
		client: http.Client{
			Timeout: sendTimeout,
			// No proxy: it would resolve the name itself.
			Transport: &http.Transport{
				DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
				MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// message is one message to one webhook.
type message struct {
	id, url string
	secrets [][]byte // each one signs
	body    []byte
}

// newBody returns the body of a message about a turn.
func newBody(t *sessionv1.Turn) ([]byte, error) {
	turn, err := jsontext.AppendMessage(nil, t)
	if err != nil {
		return nil, fmt.Errorf("write turn %s as JSON: %w", t.GetName(), err)
	}
	return json.Marshal(struct {
		Type      string          `json:"type"`
		Timestamp time.Time       `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}{finished, t.GetEndTime().AsTime(), turn})
}

// answer is the result of an attempt.
type answer struct {
	status int           // 0 without an answer
	wait   time.Duration // the requested Retry-After
	err    error         // nil if the message was accepted
}

// send makes one attempt. Its errors contain only the host of the address, because
// the rest may have secrets, and only the status of the answer.
func (s *sender) send(ctx context.Context, m message) answer {
	req, err := s.request(ctx, m)
	if err != nil {
		return answer{err: err}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{err: reason(err)}
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	_ = resp.Body.Close()
	a := answer{status: resp.StatusCode}
	switch {
	case resp.StatusCode/100 == 2:
		return a
	case resp.StatusCode/100 == 3:
		a.err = fmt.Errorf("the answer was a redirection (%d), which is not followed; use its target address instead", resp.StatusCode)
	case resp.StatusCode == http.StatusGone:
		a.err = errors.New("the answer was 410 Gone, so it is not sent again")
	default:
		a.err = fmt.Errorf("the answer was %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		a.wait = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return a
}

func (s *sender) request(ctx context.Context, m message) (*http.Request, error) {
	now := time.Now()
	signatures := make([]string, len(m.secrets))
	for i, secret := range m.secrets {
		signer, err := standardwebhooks.NewWebhookRaw(secret)
		if err != nil {
			return nil, fmt.Errorf("the secret cannot be used: %w", err)
		}
		if signatures[i], err = signer.Sign(m.id, now, m.body); err != nil {
			return nil, fmt.Errorf("the message cannot be signed: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(m.body))
	if err != nil {
		return nil, errors.New("the address cannot be read")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", s.agent)
	req.Header.Set(standardwebhooks.HeaderWebhookID, m.id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return req, nil
}

// reason says why there was no answer, without the address in url.Error.
func reason(err error) error {
	var u *url.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, errNotPublic):
		return errNotPublic
	case errors.As(err, &dns):
		return errors.New("the host's name could not be resolved")
	case errors.As(err, &u) && u.Timeout():
		return fmt.Errorf("there was no answer within %v", sendTimeout)
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &u):
		var op *net.OpError
		if errors.As(u.Err, &op) {
			return fmt.Errorf("the connection failed: %w", op.Err)
		}
		return fmt.Errorf("there was no answer: %w", u.Err)
	}
	return err
}

// retryAfter reads the header: seconds or a date; 0 without a valid value.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
