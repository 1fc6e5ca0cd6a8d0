package load

import (
	"context"
	"fmt"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// compactOneIn is after how many rounds of a session one shortens what the model sees.
const compactOneIn = 8

func (r replica) compact(ctx context.Context, session, key string) error {
	_, err := r.client.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: session, Instructions: "Keep names.", RequestId: key})
	return judge("CompactSession", err)
}

func (r rest) compact(ctx context.Context, session, key string) error {
	return r.post(ctx, "/v1/"+session+":compact", fmt.Sprintf(`{"instructions":%q}`, "Keep names."), key, func([]byte) error { return nil })
}

// compact requests a compaction, and waits until the log has the result. It does so only where no other
// client begins a turn meanwhile: the scripted model must see the message that it plays.
func (c *client) compact(ctx context.Context, session string) {
	if c.record.Fork != nil || len(c.record.Schedules) > 0 {
		return
	}
	c.mu.Lock()
	before := c.compacted
	c.mu.Unlock()
	_, key, ok := c.mutate(ctx, c.rand, func(ctx context.Context, e entry, key string) (string, error) {
		return "", e.compact(ctx, session, key)
	})
	if !ok {
		return
	}
	c.mu.Lock()
	c.record.Compactions = append(c.record.Compactions, record.Compaction{RequestID: key, Time: time.Now()})
	c.mu.Unlock()
	for {
		c.mu.Lock()
		done, news := c.compacted > before, c.news
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// shortened records the result of a compaction.
func (c *client) shortened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compacted++
	close(c.news)
	c.news = make(chan struct{})
}
