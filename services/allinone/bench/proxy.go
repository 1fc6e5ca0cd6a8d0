package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/sse"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

const (
	// proxyAdded is what the proxy may add to a first token.
	proxyAdded = time.Millisecond
	// proxyStreams is how many streams there are at once, and proxyShare the share of the direct throughput that must
	// be left.
	proxyStreams = 200
	proxyShare   = 0.9
)

// paced is a stream at the speed of a fast model; rush is one as fast as everything goes.
var (
	paced = provider.Plan{Tokens: 250, Every: 20 * time.Millisecond, First: 40 * time.Millisecond}
	rush  = provider.Plan{Tokens: 500, First: 40 * time.Millisecond}
)

// measureProxy compares streams through the model proxy with streams of the model server itself, in turn.
func measureProxy(ctx context.Context, b *bench) error {
	f, err := fleet.Run(ctx, b.shape("", false))
	if err != nil {
		return err
	}
	defer f.Stop()
	direct := &proxied{name: "the model server, read directly", url: b.modelURL + "/v1/messages"}
	through := &proxied{name: "through the model proxy", url: f.URL + "/anthropic/v1/messages"}
	for i := range 2*rounds + 2 {
		for _, p := range []*proxied{direct, through} {
			s, err := p.read(ctx, plan, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if i >= 2 { // the first ones open connections
				p.asked = append(p.asked, s.Arrived.Sub(s.Begun))
				p.first = append(p.first, s.Arrived.Sub(s.Begun)+s.Tokens[0].Received.Sub(s.Tokens[0].Sent))
			}
		}
	}
	b.row(direct.name, "until the model is asked %s, with the way of the first token back %s", direct.asked, direct.first)
	b.row(through.name, "until the model is asked %s, with the way of the first token back %s", through.asked, through.first)
	added := through.first.At(0.5) - direct.first.At(0.5)
	b.goal(added <= proxyAdded, "first token: added at the median, both ways, %s; goal: %s", stat.Milliseconds(added), stat.Milliseconds(proxyAdded))
	for _, load := range []struct {
		name string
		plan provider.Plan
		goal bool
	}{{"50 tokens/s each", paced, true}, {"as fast as they go", rush, false}} {
		if err := b.proxyLoad(ctx, direct, through, load.name, load.plan, load.goal); err != nil {
			return err
		}
	}
	return nil
}

// proxied is a way to the model server.
type proxied struct {
	name, url    string
	asked, first stat.Times
}

func (p *proxied) read(ctx context.Context, how provider.Plan, on func(sse.Token)) (*sse.Stream, error) {
	body := `{"model":"claude-sonnet-5-5","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"` + how.Prompt() + `"}]}`
	s, err := sse.Read(ctx, http.MethodPost, p.url, body, on)
	if err == nil && s.Last != "message_stop" {
		err = fmt.Errorf("the stream ended with %q", s.Last)
	}
	return s, err
}

// proxyLoad has many streams at once, each way three times.
func (b *bench) proxyLoad(ctx context.Context, direct, through *proxied, name string, how provider.Plan, goal bool) error {
	best := map[*proxied]float64{}
	for range 3 {
		for _, p := range []*proxied{direct, through} {
			rate, err := p.load(ctx, how)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			best[p] = max(best[p], rate)
		}
	}
	share := best[through] / best[direct]
	b.row(fmt.Sprintf("%d streams, %s", proxyStreams, name), "directly %.0f tokens/s, through the proxy %.0f: %.2f", best[direct], best[through], share)
	if goal {
		b.goal(share >= proxyShare, "throughput at %d streams: %.2f of direct; goal: %.2f", proxyStreams, share, proxyShare)
	}
	return nil
}

// load returns how many tokens a second came over all streams, from the first request to the last end.
func (p *proxied) load(ctx context.Context, how provider.Plan) (float64, error) {
	g, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for range proxyStreams {
		g.Go(func() error {
			n := 0
			if _, err := p.read(ctx, how, func(sse.Token) { n++ }); err != nil {
				return err
			}
			if n != how.Tokens {
				return fmt.Errorf("%d of %d tokens arrived", n, how.Tokens)
			}
			return nil
		})
	}
	err := g.Wait()
	return float64(proxyStreams*how.Tokens) / time.Since(begun).Seconds(), err
}
