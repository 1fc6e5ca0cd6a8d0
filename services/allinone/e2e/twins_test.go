package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

// twins are two all-in-one servers on one database, which are killed while clients use them. Their addresses stay.
type twins struct {
	servers [2]*system
	random  *rand.Rand
	struck  []string
}

func startTwins(t *testing.T, seed uint64, o options) *twins {
	t.Helper()
	o.database = pgtest.New(t)
	o.env = append(o.env, "FAIRLEAD_SESSION_LEASE_TTL=1s", "FAIRLEAD_SESSION_MAX_CLAIMS=40")
	p := &twins{random: rand.New(rand.NewPCG(seed, 1))}
	for i := range p.servers {
		p.servers[i] = start(t, o)
	}
	return p
}

// strike kills one server or both so many times, at random moments, and starts them again.
func (p *twins) strike(t *testing.T, times int) {
	t.Helper()
	for range times {
		wait(t.Context(), time.Duration(p.random.IntN(1200))*time.Millisecond)
		which := []int{0, 1}
		if one := p.random.IntN(3); one < 2 {
			which = []int{one}
		}
		p.struck = append(p.struck, fmt.Sprint(which))
		for _, i := range which {
			p.servers[i].kill()
		}
		wait(t.Context(), time.Duration(p.random.IntN(1500))*time.Millisecond)
		for _, i := range which {
			p.servers[i] = p.servers[i].restart(t)
		}
	}
}

// wait leaves processes alone for a while.
func wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// clients are those of twins: they repeat what does not reach a server, or is to be tried again.
type clients struct{ addresses [2]string }

func (p *twins) clients() clients { return clients{[2]string{p.servers[0].http, p.servers[1].http}} }

// send makes a request at either server until one answers it. A change has one key.
func (c clients) send(ctx context.Context, method, path, body string) (code int, text string, err error) {
	key := id.New()
	for {
		code, text, err = c.try(ctx, c.addresses[rand.IntN(2)], method, path, body, key)
		if err == nil && code < http.StatusInternalServerError && code != http.StatusConflict {
			return code, text, nil
		}
		if ctx.Err() != nil {
			return code, text, fmt.Errorf("%s %s: %d %s: %w", method, path, code, text, ctx.Err())
		}
		pause(ctx)
	}
}

func (c clients) try(ctx context.Context, address, method, path, body, key string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// get reads a resource.
func (c clients) get(ctx context.Context, path string, into any) error {
	code, text, err := c.send(ctx, http.MethodGet, path, "")
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("GET %s: %d %s", path, code, text)
	}
	return json.Unmarshal([]byte(text), into)
}
