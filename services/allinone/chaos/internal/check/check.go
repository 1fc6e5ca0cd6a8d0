// Package check judges a chaos run. It knows the contract that docs/architecture.md gives to clients and the
// script that the model played, and nothing about the servers: its only input are recordings.
package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// Rule is the name of a rule.
type Rule string

// The rules.
const (
	Tiling      Rule = "ranges tile the log"
	Resuming    Rule = "streams go on where they left off"
	SameState   Rule = "all clients have the same state"
	NotLost     Rule = "nothing acknowledged is lost"
	Noted       Rule = "a call of an MCP server reaches it once"
	Once        Rule = "a turn is accepted and ends once"
	Completes   Rule = "turns come to what the script says"
	EffectOnce  Rule = "no effect is there twice, none is missing"
	Arrivals    Rule = "a message that arrives during a turn does what it asks for, in order"
	Voids       Rule = "what no longer counts is named exactly"
	Asked       Rule = "what a person decides is done, once"
	Operations  Rule = "an operation has one result, once"
	Files       Rule = "files go back with what was undone"
	Rewinds     Rule = "a return to a checkpoint is done once"
	Subagents   Rule = "a subagent does what its call asks for, and ends before the turn above it"
	Forks       Rule = "a fork is what its source was"
	Schedules   Rule = "a time of a schedule makes one turn"
	Compactions Rule = "a wish to shorten the model's view is answered once"
	Budgets     Rule = "no budget is exceeded"
	Unknown     Rule = "only a sandbox that died makes a call unknown"
	Transcript  Rule = "the transcript is well formed for a model"
	Restarts    Rule = "steps are restarted only after a fault"
	Answered    Rule = "requests succeed, or ask to try again"
	Wires       Rule = "all protocols show what the log says"
	Takeover    Rule = "a session goes on soon after its holder died"
)

// Violation is one breach of a rule.
type Violation struct {
	Rule    Rule
	Session string
	Text    string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Session, v.Text) }

// Limits bound effects that are not breaches by themselves.
type Limits struct {
	// Takeover is the longest time from the kill of a session's holder to the session's next event, or from
	// the end of the last other disturbance meanwhile.
	Takeover time.Duration
	// Restarts bounds how many steps of a session one fault may restart.
	Restarts int
	// Slack is the allowed difference between the clocks of two observations, and the time until a fault
	// shows.
	Slack time.Duration
}

// Report is the result of a run.
type Report struct {
	Violations []Violation
	Stats      Stats
}

// Stats are the figures of a run.
type Stats struct {
	Sessions       int
	Fullest        int // how much of a budget was used in one of its windows, in percent, at most
	Compacted      int // how often what the model sees was shortened
	Rewound, Forks int // returns to checkpoints, and forks
	NotRewound     int // returns that were refused
	LogStats
	TurnStats
	FamilyStats
	CallStats
	TakeoverStats
	Wires []WireStats
}

// LogStats count what was read.
type LogStats struct {
	Events            int   // in the logs
	Numbers           int64 // that they cover
	Received, Streams int   // by followers
}

// TurnStats count turns and steps.
type TurnStats struct {
	Turns, Complete, Joined, Interrupted, RolledBack, Partial int
	Steps, Restarted                                          int // steps, and those that were restarted
	Scheduled, LeftOut                                        int // turns that schedules sent, times that were left out
}

// FamilyStats count subagents, and how many of them did all that they were to do.
type FamilyStats struct {
	Subagents, Helped, Deepest int
}

// CallStats count calls and their effects.
type CallStats struct {
	Calls, Effects, UnknownCalls         int
	FilesBack                            int // effects that were undone with their turns or steps
	Operations, UnknownOperations, Looks int // looks are those of the model
	Approved, Edited, Denied, TooLate    int // answers of persons; edited ones were allowed with other arguments
	Replied, Declined                    int // answers to questions
	Notes, Unmade                        int // calls that MCP servers got, and calls that were not made because a server was out of reach
}

// TakeoverStats are the times for which sessions of a killed replica stood still, sorted.
type TakeoverStats struct {
	Takeovers []time.Duration // undisturbed
	Disturbed []time.Duration // with another fault meanwhile
	Calmed    []time.Duration // the same, from the end of the last other fault
}

type checker struct {
	run    *record.Run
	script *script.Script
	limits Limits
	faults timeline
	report Report
	noted  map[string]bool // the lines that calls were to note at the server on the network
}

// Run judges a run.
func Run(run *record.Run, s *script.Script, l Limits) Report {
	c := &checker{run: run, script: s, limits: l, faults: timeline{run, l.Slack}, noted: map[string]bool{}}
	for _, session := range run.Sessions {
		c.session(session)
	}
	sessions := map[string]*record.Session{}
	for _, s := range run.Sessions {
		sessions[s.Name] = s
		for _, k := range descendants(s) {
			sessions[k.Name] = k
		}
	}
	forks{c, sessions}.check()
	c.budgets()
	c.notes()
	takeovers{c, sessions}.check()
	slices.Sort(c.report.Stats.Takeovers)
	slices.Sort(c.report.Stats.Disturbed)
	slices.Sort(c.report.Stats.Calmed)
	return c.report
}

func (c *checker) fault(r Rule, session *record.Session, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{r, session.Name, fmt.Sprintf(format, args...)})
}

// faultOf records a breach that does not belong to one session.
func (c *checker) faultOf(r Rule, of, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{r, of, fmt.Sprintf(format, args...)})
}

func (c *checker) session(s *record.Session) {
	st := &c.report.Stats
	st.Sessions++
	st.Events += len(s.Log)
	log := c.tile(s, "the log", s.Log)
	st.Numbers += log.Last()
	again := c.tile(s, "the log of the other replica", s.Again)
	state := log.State()
	if d := difference(state, again.State()); d != "" {
		c.fault(SameState, s, "the replicas tell different logs: %s", d)
	}
	for _, f := range s.Followers {
		c.follower(s, f, log, state)
	}
	c.wires(s, log)
	for _, r := range s.Refused {
		c.fault(Answered, s, "%s", r)
	}
	past := log.Past()
	c.accepted(s, past)
	c.turns(s, log, past)
	c.arrivals(s, past)
	c.voids(s)
	c.rewinds(s)
	c.schedules(s)
	c.compactions(s)
	all := c.family(s, log, past)
	household{c, all}.check()
	said := people{c, s, all}
	said.answers()
	said.replies()
	c.operations(s, past)
	c.effects(s, all)
	c.transcript(s, state)
	c.restarts(s)
}

// tile puts a whole log together.
func (c *checker) tile(s *record.Session, what string, events []*event) *fold.Log {
	log := &fold.Log{}
	for _, e := range events {
		last := log.Last()
		if err := log.Add(e); err != nil {
			c.fault(Tiling, s, "%s: %v", what, err)
		} else if e.GetFirstSeq() != last+1 {
			c.fault(Tiling, s, "%s: %d..%d overlaps what ends with %d", what, e.GetFirstSeq(), e.GetSeq(), last)
		}
	}
	return log
}
