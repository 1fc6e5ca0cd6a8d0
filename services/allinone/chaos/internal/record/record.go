// Package record has the observations of a chaos run: what clients sent and received, the faults, and the
// final state. It is the only input of the checker.
package record

import (
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// Run is everything that was seen.
type Run struct {
	Seed       uint64
	Begin, End time.Time
	Faults     []Fault
	Prices     Prices
	Budgets    []Budget
	Sessions   []*Session
	// Notes is how often the MCP server on the network was called with each line.
	Notes map[string]int `json:",omitempty"`
}

// Prices are what a token costs, in billionths of a US dollar.
type Prices struct{ Input, Output int64 }

// Budget is what model calls may cost within each window: of a tenant or, with a user, of that user of it. Windows are
// aligned to 1970-01-01 in UTC.
type Budget struct {
	Tenant, User string
	NanoUSD      int64
	Window       time.Duration
}

// Kind is what was done to a program.
type Kind string

// The kinds of faults.
const (
	Kill      Kind = "kill -9"
	Pause     Kind = "SIGSTOP"
	Terminate Kind = "SIGTERM"
	Immediate Kind = "immediate shutdown" // of Postgres: it goes without tidying up
	Cut       Kind = "cut connections"
	Stall     Kind = "stalled connections"
)

// The services that faults hit.
const (
	SessionService = "session"
	ToolsService   = "tools"
	SandboxService = "sandbox"
	Gateway        = "gateway"
	Postgres       = "postgres"
)

// Fault is something that was done to a program, or to the connections to it.
type Fault struct {
	Kind    Kind
	Service string
	Target  string // the program, such as session-2
	Begin   time.Time
	End     time.Time // when the program answered again
	// Held are the sessions that a session replica held when it was killed.
	Held []string `json:",omitempty"`
}

// Session is one session: what clients did and saw of it, and how it was at the end.
type Session struct {
	Name string // as sessions/{session}
	// Tenant and User own the session; empty for the default ones.
	Tenant, User string `json:",omitempty"`
	Fork         *Fork  `json:",omitempty"` // from which other session it was made, if it was
	// Call made it, if it is a subagent's; what people said about its calls is with the outermost session.
	Call     *sessionv1.ParentCall `json:",omitempty"`
	Accepted []Accepted
	Wishes
	Said
	// Operations are those that the log tells of, by the call that began them.
	Operations map[string]*Operation `json:",omitempty"`
	Followers  []*Follower
	Wires      []*WireFollower `json:",omitempty"` // clients that follow through the gateway's protocols
	// Refused are answers that no client should get: neither a success nor one that asks to try again.
	Refused []string `json:",omitempty"`

	Log      []*sessionv1.Event // at the end, read from one replica
	Again    []*sessionv1.Event // and from the other
	Turns    []*sessionv1.Turn
	Messages []*sessionv1.Message
	Tree     []*sessionv1.Message // all messages, also those that were left behind, as an export has them
	Children []*Session           `json:",omitempty"` // of its subagents
	Effects  []string             // the lines that commands have appended in the workspace
}

// Wishes are what clients asked for besides turns.
type Wishes struct {
	Rewinds   []Rewind   `json:",omitempty"`
	Schedules []Schedule `json:",omitempty"`
	// Compactions are accepted wishes to shorten what the model sees, one after the other.
	Compactions []Compaction `json:",omitempty"`
	// Unforked are turns from which no fork was to be had, because they never began.
	Unforked []string `json:",omitempty"`
}

// Said is what people said when they were asked.
type Said struct {
	Answers []Answer
	Replies []Reply `json:",omitempty"`
}

// Fork is how a session was made from another one.
type Fork struct {
	RequestID string
	From      string   // the other session
	Turn      string   // the one after which it goes on
	Others    []string // further answers to the same request, which must be the same
	// The request was made for the first time at Begin, and acknowledged at Time. The files were copied in between.
	Begin, Time time.Time
}

// Compaction is a wish to shorten what the model sees.
type Compaction struct {
	RequestID string
	Time      time.Time
}

// Schedule sends a message at set times.
type Schedule struct {
	Name string
	Cron string
	Text string
	Made time.Time // as the server tells it
	// Stopped is when it was asked to stop, for the first time; zero if it was not.
	Stopped time.Time
}

// Rewind is a return to a checkpoint that a client asked for.
type Rewind struct {
	RequestID  string
	Checkpoint string
	// Refused is why it was not done; empty when it was.
	Refused string `json:",omitempty"`
	Time    time.Time
}

// Accepted is a turn that a server has acknowledged.
type Accepted struct {
	RequestID string
	Text      string
	OnActive  sessionv1.OnActive // what it asked for if a turn was active
	Turn      string             // the answer
	Others    []string           // further answers to the same request, which must be the same
	Time      time.Time
}

// Answer is what a person said about a call that was asked about.
type Answer struct {
	RequestID string
	CallID    string
	Approved  bool
	// Arguments are those that the person put in place of the model's, if any.
	Arguments string `json:",omitempty"`
	// TooLate is the server's answer when the call no longer waited for an answer; empty when the answer
	// was accepted.
	TooLate string `json:",omitempty"`
	Time    time.Time
}

// Reply is a person's answer to a question.
type Reply struct {
	RequestID string
	CallID    string
	Content   string // empty: the person did not want to answer
	// TooLate is as that of an Answer.
	TooLate string `json:",omitempty"`
	Time    time.Time
}

// Operation is what clients saw of an operation.
type Operation struct {
	Looks []Look
	// End is what one replica tells of it at the end, Again what the other one does.
	End, Again Look
}

// Look is an operation as a server told it.
type Look struct {
	Via    string
	Time   time.Time
	State  toolsv1.OperationState
	Exit   int32 // -1 as long as there is none
	Output string
}

// Ended reports whether the operation had ended.
func (l Look) Ended() bool {
	return l.State != toolsv1.OperationState_OPERATION_STATE_UNSPECIFIED && l.State != toolsv1.OperationState_OPERATION_STATE_RUNNING
}

// Follower is a client that follows a session's log, over one stream after the other.
type Follower struct {
	Name    string
	Streams []*Stream
}

// Stream is one connection of a follower.
type Stream struct {
	Via    string // where it was connected to
	After  int64  // what it asked to go on after
	Begin  time.Time
	Events []*sessionv1.Event
	Ended  string // why
}
