package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

// measureList lists sessions of a tenant with very many, over REST: the first
// page repeatedly, and every page of a walk.
func measureList(ctx context.Context, b *bench) error {
	const goal = 10 * time.Millisecond
	for _, store := range stores {
		f, _, err := b.filled(ctx, store, "sessions", b.sessions)
		if err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
		for _, size := range []int{50, 200} {
			times, err := listPages(ctx, f, size, min(200, b.sessions/size))
			if err != nil {
				f.Stop()
				return fmt.Errorf("%s: %w", store, err)
			}
			base, err := getTimes(ctx, f.URL+"/v1/capabilities")
			if err != nil {
				f.Stop()
				return err
			}
			b.row(fmt.Sprintf("%s: a page of %d of %d", store, size, b.sessions), "%s; a request without the store: %s", times, base)
			b.goal(times.At(0.5) < goal, "%s at the median, %s at the 99th percentile; goal: %s", stat.Milliseconds(times.At(0.5)),
				stat.Milliseconds(times.At(0.99)), stat.Milliseconds(goal))
		}
		f.Stop()
	}
	return nil
}

// listPages walks pages from the newest session on.
func listPages(ctx context.Context, f *fleet.Fairlead, size, pages int) (times stat.Times, err error) {
	token := ""
	for range pages {
		begun := time.Now()
		text, err := fleet.Get(ctx, fmt.Sprintf("%s/v1/sessions?pageSize=%d&pageToken=%s", f.URL, size, url.QueryEscape(token)))
		if err != nil {
			return nil, err
		}
		times = append(times, time.Since(begun))
		var page struct {
			Sessions      []json.RawMessage
			NextPageToken string
		}
		if err := json.Unmarshal(text, &page); err != nil || len(page.Sessions) != size {
			return nil, fmt.Errorf("a page has %d sessions: %.200s", len(page.Sessions), text)
		}
		token = page.NextPageToken
	}
	return times, nil
}

func getTimes(ctx context.Context, url string) (times stat.Times, err error) {
	for range 200 {
		begun := time.Now()
		if _, err := fleet.Get(ctx, url); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begun))
	}
	return times, nil
}
