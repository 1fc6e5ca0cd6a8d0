package worker

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// silence is how long a stream may say nothing before it counts as broken.
	silence = 2 * time.Minute
	// maxEvent bounds an event of a stream.
	maxEvent = 32 << 20
)

// follow sends the events of a session until the context ends: first all that are stored, then those that come. After a
// broken stream it begins anew. Each element of out is applied as a whole. A refusal of the server ends it.
func (a *api) follow(ctx context.Context, w *work, out chan<- []event) error {
	delay := growing(10 * time.Second)
	for {
		began := time.Now()
		err := a.stream(ctx, w, out)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !transient(err):
			return err
		case time.Since(began) > 5*time.Second:
			delay.Reset()
		}
		if !pause(ctx, wait(err, delay.NextBackOff())) {
			return context.Cause(ctx)
		}
	}
}

// stream opens the stream, lists what is stored, and reads the stream to its end. What happens in between comes twice.
func (a *api) stream(ctx context.Context, w *work, out chan<- []event) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	resp, err := a.request(ctx, http.MethodGet, w.session()+"/events/stream", nil, 0)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	stored, err := a.stored(ctx, w)
	if err != nil {
		return err
	}
	if !send(ctx, out, stored) {
		return ctx.Err()
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	var data strings.Builder
	for lines.Scan() {
		quiet.Reset(silence)
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data.WriteString(strings.TrimPrefix(text, " "))
		}
		if data.Len() > maxEvent {
			return errors.New("an event of the stream is too long")
		}
		if line != "" || data.Len() == 0 {
			continue
		}
		e, err := decode([]byte(data.String()))
		data.Reset()
		switch {
		case err != nil:
			return err
		case e.Type == "error":
			return io.ErrUnexpectedEOF // the server has ended the stream
		case e.Type == "event_start", e.Type == "event_delta", e.Type == "ping":
			continue
		}
		if !send(ctx, out, []event{e}) {
			return ctx.Err()
		}
	}
	return cmp.Or(lines.Err(), io.EOF)
}

// stored lists all events of a session, the oldest first.
func (a *api) stored(ctx context.Context, w *work) ([]event, error) {
	var all []event
	for page := ""; ; {
		q := url.Values{"limit": {"1000"}, "order": {"asc"}}
		if page != "" {
			q.Set("page", page)
		}
		var got struct {
			Data []json.RawMessage
			Next string `json:"next_page"`
		}
		if err := a.once(ctx, http.MethodGet, w.session()+"/events?"+q.Encode(), nil, &got, 0); err != nil {
			return nil, err
		}
		for _, raw := range got.Data {
			e, err := decode(raw)
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
		if page = got.Next; page == "" {
			return all, nil
		}
	}
}

func send(ctx context.Context, out chan<- []event, batch []event) bool {
	select {
	case out <- batch:
		return true
	case <-ctx.Done():
		return false
	}
}
