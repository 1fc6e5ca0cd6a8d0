package check

import (
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// told is what a log says about a line that a command appends.
type told struct {
	line    string
	asked   time.Time // when its call was there last
	seq     int64     // of that event
	ended   time.Time // when its call had ended; zero if it has not
	undone  time.Time // when the files went back to before it; zero if they never did
	certain bool      // its call ended well, and nothing goes on that could append it later
}

// tellEffects finds in a log the lines that commands append: they are in single quotes before ">>".
func tellEffects(s *record.Session) []*told {
	var all []*told
	byCall, byLine := map[string][]*told{}, map[string]*told{}
	for i, e := range s.Log {
		if a := e.GetToolCallArguments(); a != nil {
			byCall[a.GetCallId()] = nil
			for _, line := range script.Appends(a.GetTool(), a.GetArgumentsJson()) {
				t := byLine[line]
				if t == nil {
					t = &told{line: line}
					byLine[line], all = t, append(all, t)
				}
				t.asked, t.seq, t.ended, t.certain = e.GetTime().AsTime(), e.GetSeq(), time.Time{}, false
				byCall[a.GetCallId()] = append(byCall[a.GetCallId()], t)
			}
			if child := childOf(s, a.GetCallId()); child != nil { // what it did goes back with its call
				for _, t := range tellEffects(child) {
					t.seq = e.GetSeq()
					all = append(all, t)
				}
			}
		}
		if r := e.GetApprovalResolved(); r.GetUpdatedArgumentsJson() != "" {
			for i, line := range script.Lines(r.GetUpdatedArgumentsJson()) {
				byCall[r.GetCallId()][i].line = line
			}
		}
		if f := e.GetToolCallFinished(); f != nil {
			for _, t := range byCall[f.GetCallId()] {
				t.ended, t.certain = e.GetTime().AsTime(), f.GetOutcome() == outcomeOK && f.GetOperation() == ""
			}
		}
		if r := e.GetSessionRewound(); r != nil && filesBack(s.Log[i:]) {
			for _, t := range all {
				if t.seq >= r.GetVoidFirstSeq() && t.seq <= r.GetVoidLastSeq() && t.undone.IsZero() {
					t.undone = e.GetTime().AsTime()
				}
			}
		}
	}
	return all
}

// filesBack reports whether a session went back together with its files, in the log from that event on:
// always to a checkpoint; after an undone turn, unless a warning beside it says otherwise.
func filesBack(log []*event) bool {
	if log[0].GetSessionRewound().GetCheckpoint() != "" {
		return true
	}
	for _, e := range log[1:] {
		switch {
		case e.GetSessionRewound() != nil || e.GetStepStarted() != nil:
			return true
		case e.GetWarning().GetReason() == "FILES_KEPT":
			return false
		}
	}
	return true
}

// rewinds checks that the log has each acknowledged rewind once, and no other.
func (c *checker) rewinds(s *record.Session) {
	told := map[string]int{}
	for _, e := range s.Log {
		if point := e.GetSessionRewound().GetCheckpoint(); point != "" {
			told[point]++
		}
	}
	for _, r := range s.Rewinds {
		if r.Refused != "" {
			c.report.Stats.NotRewound++
			continue
		}
		c.report.Stats.Rewound++
		told[r.Checkpoint]--
	}
	for point, n := range told {
		if n != 0 {
			c.fault(Rewinds, s, "the log tells of %d more returns to %s than were acknowledged", n, point)
		}
	}
}
