package modelproxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// newClient returns the client for providers. Watches end its requests.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 1024, 256
	t.DisableCompression = true // the bytes are passed on as they are
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would send the key elsewhere
	}
}

var errSilent = errors.New("the provider was silent for too long")

// defaultVersion is the version of Anthropic's API for clients that name none.
const defaultVersion = "2023-06-01"

// sent and returned are the beginnings of headers that are passed on. A provider gets those of its own API. The SDKs' X-Stainless-*, which tell of the
// client's machine, are not.
var (
	sent = map[modelapi.Form][]string{
		modelapi.Anthropic: {
			"Accept", "Anthropic-Beta", "Anthropic-Version", "Content-Type", "Idempotency-Key", "User-Agent", "X-App", "X-Claude-Code-",
		},
		modelapi.OpenAI: {"Accept", "Content-Type", "Idempotency-Key", "Openai-Beta", "User-Agent"},
	}
	returned = []string{
		"Anthropic-Ratelimit-", "Content-Type", "Openai-Processing-Ms", "Openai-Version", "Request-Id", "Retry-After", "X-Ratelimit-", "X-Request-Id", "X-Should-Retry",
	}
)

// pass copies the headers that are passed on.
func pass(to, from http.Header, names []string) {
	for name, values := range from {
		for _, n := range names {
			if name == n || strings.HasPrefix(name, n) && (strings.HasSuffix(n, "-") || n == "Retry-After") {
				to[name] = values
				break
			}
		}
	}
}

// forward passes the request on to the model's provider, and its answer back.
func (c *call) forward() *modelapi.Failure {
	hidden, f := c.prepare()
	if f != nil {
		return f
	}
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	var watch *time.Timer
	if idle := c.idle(); idle > 0 {
		watch = time.AfterFunc(idle, func() { cancel(errSilent) })
		defer watch.Stop()
	}
	req, err := c.request(ctx)
	if err != nil {
		return refused(http.StatusInternalServerError, "the request could not be written")
	}
	c.begun = true
	resp, err := c.client.Do(req)
	if err != nil {
		c.begun = errors.Is(context.Cause(ctx), errSilent)
		return c.unreachable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer is complete or void by then
	f = c.refusedBy(resp)
	if f == nil && c.spare {
		f = c.unavailable(resp)
	}
	if f != nil {
		c.begun = false
		return f
	}
	return c.pipe(ctx, resp, watch, hidden)
}

// prepare changes what must differ in the request, and reserves the call. It reports whether the client has not asked
// for the usage.
func (c *call) prepare() (hidden bool, _ *modelapi.Failure) {
	c.object.Set("model", c.entry.ModelName)
	if c.route.Operation == modelapi.CountTokens {
		return false, nil
	}
	answers, f := c.answers()
	if f != nil {
		return false, f
	}
	asked := c.maxTokens()
	most := asked
	if most <= 0 || c.limited() && c.entry.MaxOutputTokens < most {
		most = c.entry.MaxOutputTokens
	}
	granted, f := c.reserve(c.inputBound, most*answers)
	if f != nil {
		return false, f
	}
	each := granted / answers
	if each < most || each < asked || c.limited() && asked <= 0 {
		c.bound(each)
	}
	c.applySettings(each)
	if c.route.Operation != modelapi.ChatCompletions || !c.stream {
		return false, nil
	}
	options := c.object.Raw("stream_options")
	if bytes.Contains(options, []byte("include_usage")) && !bytes.Contains(options, []byte("false")) {
		return false, nil
	}
	c.object.Set("stream_options", map[string]bool{"include_usage": true})
	return true, nil
}

// bounding are the fields that bound the answer.
var bounding = map[modelapi.Operation][]string{
	modelapi.Messages: {"max_tokens"}, modelapi.ChatCompletions: {"max_completion_tokens", "max_tokens"}, modelapi.Responses: {"max_output_tokens"},
}

// maxTokens returns what bounds the answer; 0 if nothing does. Of two fields it is the larger one: which of them
// counts is the provider's choice.
func (c *call) maxTokens() (n int64) {
	for _, field := range bounding[c.route.Operation] {
		n = max(n, c.object.Int(field))
	}
	return n
}

// bound lets no field allow more than this.
func (c *call) bound(most int64) {
	fields, given := bounding[c.route.Operation], false
	for _, field := range fields {
		raw := c.object.Raw(field)
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		given = true
		if n := c.object.Int(field); n <= 0 || n > most {
			c.object.Set(field, most)
		}
	}
	if !given {
		c.object.Set(fields[0], most)
	}
}

// maxAnswers is how many answers a request may ask for, as at OpenAI.
const maxAnswers = 128

// answers returns how many answers the request asks for. Each may have all the output.
func (c *call) answers() (int64, *modelapi.Failure) {
	raw := c.object.Raw("n")
	if c.route.Operation != modelapi.ChatCompletions || len(raw) == 0 || string(raw) == "null" {
		return 1, nil
	}
	n := c.object.Int("n")
	if n < 1 || n > maxAnswers {
		return 0, refused(http.StatusBadRequest, "n: it is a whole number from 1 to %d", maxAnswers)
	}
	return n, nil
}

// request returns the provider's request.
func (c *call) request(ctx context.Context) (*http.Request, error) {
	url := c.entry.Endpoint.BaseURL
	path := map[modelapi.Operation]string{
		modelapi.Messages: "/v1/messages", modelapi.CountTokens: "/v1/messages/count_tokens",
		modelapi.ChatCompletions: "/chat/completions", modelapi.Responses: "/responses",
	}[c.route.Operation]
	if c.route.Form == modelapi.Anthropic && c.r.URL.Query().Get("beta") == "true" { // the only parameter of these paths
		path += "?beta=true"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, bytes.NewReader(c.object.Bytes()))
	if err != nil {
		return nil, err
	}
	pass(req.Header, c.r.Header, sent[c.route.Form])
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Content-Type", "application/json")
	key := c.entry.Endpoint.Key.Reveal()
	if c.entry.Kind == catalog.KindAnthropic {
		if req.Header.Get("Anthropic-Version") == "" {
			req.Header.Set("Anthropic-Version", cmp.Or(c.entry.Endpoint.Version, defaultVersion))
		}
		if key != "" {
			req.Header.Set("X-Api-Key", key)
		} else if token := c.entry.Endpoint.Token.Reveal(); token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	} else if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// maxError bounds what is read of an error.
const maxError = 64 << 10

// unavailable returns a failure if the answer says, as turns understand it, that the model is not available. Otherwise
// the answer can be passed on.
func (c *call) unavailable(resp *http.Response) *modelapi.Failure {
	if resp.StatusCode < http.StatusBadRequest {
		return nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // a part of it is enough
	e := transport.Refused(c.entry.Provider, resp.StatusCode, resp.Header, said)
	if c.givesWay = e.Retryable(); c.givesWay {
		return c.failure(e)
	}
	type body struct {
		io.Reader
		io.Closer
	}
	resp.Body = body{io.MultiReader(bytes.NewReader(said), resp.Body), resp.Body}
	return nil
}

// unreachable returns the answer to a request that got none.
func (c *call) unreachable(ctx context.Context, err error) *modelapi.Failure {
	c.givesWay = !gone(c.r.Context()) //nolint:contextcheck // it is the request's own
	c.Log.WarnContext(ctx, "a model provider could not be reached", "provider", c.entry.Provider, "error", err)
	if errors.Is(context.Cause(ctx), errSilent) {
		return &modelapi.Failure{Status: http.StatusGatewayTimeout, Message: fmt.Sprintf("the model provider %s was silent for %s", c.entry.Provider, c.idle())}
	}
	return &modelapi.Failure{Status: http.StatusBadGateway, Message: fmt.Sprintf("the model provider %s could not be reached; try again", c.entry.Provider)}
}

// refusedBy returns the answer to a request that the provider refuses because of this server, not of the client.
// Other errors are passed on.
func (c *call) refusedBy(resp *http.Response) *modelapi.Failure {
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		c.Log.ErrorContext(c.r.Context(), "a model provider refuses the key", "provider", c.entry.Provider, "status", resp.StatusCode)
		return &modelapi.Failure{
			Status: http.StatusInternalServerError, Retry: modelapi.Never,
			Message: fmt.Sprintf("the model provider %s refuses this server's key (HTTP %d); ask the operator to check it", c.entry.Provider, resp.StatusCode),
		}
	case resp.StatusCode/100 == 3:
		return &modelapi.Failure{
			Status: http.StatusInternalServerError, Retry: modelapi.Never,
			Message: fmt.Sprintf("the model provider %s answered with a redirection; ask the operator to check its base URL", c.entry.Provider),
		}
	}
	return nil
}

// pipe passes the answer on as it comes.
func (c *call) pipe(ctx context.Context, resp *http.Response, watch *time.Timer, hidden bool) *modelapi.Failure {
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	streams := mediaType == eventStream
	t := &tap{stream: streams, hidden: hidden && streams}
	pass(c.w.Header(), resp.Header, returned)
	var ping []byte
	if streams {
		ping = pingOf(c.route)
	}
	p := newPulse(c.w, ping, func() { c.head(resp.StatusCode, resp.Header.Get("Content-Type")) })
	defer p.end()
	if err := p.write(nil); err != nil { // the head
		return nil // the client has gone
	}
	failed := resp.StatusCode >= http.StatusBadRequest
	if failed {
		c.begun, c.failed = false, strconv.Itoa(resp.StatusCode)
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if watch != nil {
				watch.Reset(c.idle())
			}
			if p.write(t.feed(buf[:n])) != nil {
				c.left(t, failed)
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			_ = p.write(t.last())
			c.answered(t, failed)
			return nil
		}
		if err != nil {
			c.left(t, failed)
			c.broken(ctx, p, err)
			return nil
		}
	}
}

// answered records what a whole answer says of its use.
func (c *call) answered(t *tap, failed bool) {
	c.answerID, c.finish = t.found.ID, t.found.StopReason
	if u := usageOf(t.usage()); u != nil && !failed && c.route.Operation != modelapi.CountTokens {
		c.used(u)
	}
}

// left records what an answer has used whose client leaves, or whose stream breaks off, behind its last word. Clients
// leave when they have read that, and need not wait for the end of the connection.
func (c *call) left(t *tap, failed bool) {
	if t.found.StopReason != "" || c.route.Operation == modelapi.Responses { // which tells the use with its last event alone
		c.answered(t, failed)
	}
}

// broken tells the client that the answer broke off: with an event where that is possible, otherwise by cutting it off.
func (c *call) broken(ctx context.Context, p *pulse, err error) {
	if gone(c.r.Context()) { //nolint:contextcheck // it is the request's own
		return
	}
	c.failed = "broken"
	c.Log.WarnContext(ctx, "a model provider's answer broke off", "provider", c.entry.Provider, "error", err)
	what := "broke off before the answer was complete"
	if errors.Is(context.Cause(ctx), errSilent) {
		what = fmt.Sprintf("was silent for %s", c.idle())
	}
	if p.ping == nil || p.halfway() {
		panic(http.ErrAbortHandler)
	}
	_ = p.write(failEvent(c.route, modelapi.Failure{Status: modelapi.Overloaded, Message: fmt.Sprintf("the stream of the model provider %s %s", c.entry.Provider, what)}, c.id))
}

// pingOf returns what a client skips: a ping of Anthropic's API, or a comment.
func pingOf(r modelapi.Route) []byte {
	if r.Form == modelapi.Anthropic {
		return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	}
	return []byte(": ping\n\n")
}

// failEvent returns the event of an error within an answer.
func failEvent(r modelapi.Route, f modelapi.Failure, requestID string) []byte {
	e := r.Error(f, requestID)
	switch r.Operation {
	case modelapi.Messages, modelapi.Responses:
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", e)
	default:
		return fmt.Appendf(nil, "data: %s\n\n", e)
	}
}

// usageOf is nil for a usage without tokens: some servers send one.
func usageOf(u *sessionv1.Usage) *sessionv1.Usage {
	if u.GetInputTokens()+u.GetOutputTokens()+u.GetCacheReadTokens()+u.GetCacheWriteTokens() == 0 {
		return nil
	}
	return u
}
