package main

import "context"

// throughput is the output of storebench.
type throughput struct {
	Seconds                      float64
	Events, Rows, Bytes, Commits int64
	CopyRows                     int64
	CopySeconds                  float64
}

// measureEvents has many sessions of one committer append as fast as their logs
// take it, and copies the resulting rows into the same Postgres.
func measureEvents(ctx context.Context, b *bench) error {
	for _, k := range []struct {
		name string
		args []string
	}{
		{"deltas, which merge while they wait", nil},
		{"events of which none can be merged", []string{"--distinct"}},
	} {
		database, err := b.database(ctx)
		if err != nil {
			return err
		}
		var t throughput
		if err := b.storebench(ctx, &t, append([]string{"throughput", "--sessions", "200", "--database", database}, k.args...)...); err != nil {
			return err
		}
		events, rows, copied := float64(t.Events)/t.Seconds, float64(t.Rows)/t.Seconds, float64(t.CopyRows)/t.CopySeconds
		b.printf("   %s, of 200 sessions\n", k.name)
		b.row("  durable", "%.0f events/s, %.0f rows/s, %.2f MB/s, %.1f commits/s", events, rows, float64(t.Bytes)/t.Seconds/1e6, float64(t.Commits)/t.Seconds)
		b.row("  COPY of the same rows", "%.0f rows/s, %.2f MB/s", copied, float64(t.Bytes)/t.CopySeconds/1e6)
		b.goal(events >= copied/2, "events/s are %.2f of COPY's rows/s (rows/s: %.2f); goal: 0.50", events/copied, rows/copied)
	}
	return nil
}
