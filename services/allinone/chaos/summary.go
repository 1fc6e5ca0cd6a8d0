package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/check"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// summarize writes the result of a run.
func summarize(w io.Writer, run *record.Run, rep check.Report) {
	counts := map[string]int{}
	kills := 0
	for _, f := range run.Faults {
		counts[fmt.Sprintf("%s %s", f.Service, f.Kind)]++
		if f.Kind == record.Kill || f.Kind == record.Immediate {
			kills++
		}
	}
	var kinds []string
	for k := range counts {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	s := rep.Stats
	fmt.Fprintf(w, "\nchaos: seed %d, %s, %d kills, %d other faults\n", run.Seed, run.End.Sub(run.Begin).Round(time.Second), kills, len(run.Faults)-kills)
	for _, k := range kinds {
		fmt.Fprintf(w, "  %-36s %5d\n", k, counts[k])
	}
	fmt.Fprintf(w, "sessions %d · turns accepted %d, COMPLETE as scripted %d · steps %d · calls %d · effects %d\n", s.Sessions, s.Turns, s.Complete, s.Steps, s.Calls, s.Effects)
	fmt.Fprintf(w, "turns that joined another %d, interrupted %d, rolled back %d\n", s.Joined, s.Interrupted, s.RolledBack)
	fmt.Fprintf(w, "turns that a budget ended PARTIAL %d, the fullest window of a budget %d%%\n", s.Partial, s.Fullest)
	fmt.Fprintf(w, "subagents %d, on %d levels · COMPLETE as scripted %d\n", s.Subagents, s.Deepest, s.Helped)
	fmt.Fprintf(w, "returns to checkpoints %d, refused %d · effects undone with their files %d · forks %d · views shortened %d\n", s.Rewound, s.NotRewound, s.FilesBack, s.Forks, s.Compacted)
	fmt.Fprintf(w, "turns that schedules sent %d, times left out behind a turn that waited %d\n", s.Scheduled, s.LeftOut)
	fmt.Fprintf(w, "calls that persons allowed %d, allowed with other arguments %d, refused %d · questions answered %d, declined %d · answers that came too late %d\n",
		s.Approved, s.Edited, s.Denied, s.Replied, s.Declined, s.TooLate)
	fmt.Fprintf(w, "calls that the MCP server on the network got %d · calls of servers that were not made %d\n", s.Notes, s.Unmade)
	fmt.Fprintf(w, "operations that outlived their calls %d, of which %d are unknown (only where the sandbox died); the model looked %d times\n", s.Operations, s.UnknownOperations, s.Looks)
	fmt.Fprintf(w, "events %d in the logs (%d numbers), %d received over %d streams\n", s.Events, s.Numbers, s.Received, s.Streams)
	for _, f := range s.Wires {
		fmt.Fprintf(w, "wire %-10s followers %d · reconnects %d, %d of them after a break · turns compared at the end %d, as they happened %d · calls %d, with arguments %d, with results %d · violations %d\n",
			f.Wire, f.Followers, f.Reconnects, f.Broken, f.Turns, f.Live, f.Calls, f.Arguments, f.Results, f.Violations)
	}
	fmt.Fprintf(w, "takeover after kill -9 of the holder: %s\n", spread(s.Takeovers))
	fmt.Fprintf(w, "  with another fault meanwhile:       %s\n", spread(s.Disturbed))
	fmt.Fprintf(w, "    of that, after it was over:       %s\n", spread(s.Calmed))
	fmt.Fprintf(w, "restarted steps %d · unknown calls %d (only where the sandbox died, or what called an MCP server)\n", s.Restarted, s.UnknownCalls)
	fmt.Fprintf(w, "violations: %d\n", len(rep.Violations))
}

// spread describes sorted durations.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))].Round(time.Millisecond) }
	return fmt.Sprintf("p50 %s, p99 %s, max %s (%d)", at(0.5), at(0.99), at(1), len(d))
}
