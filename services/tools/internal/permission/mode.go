package permission

import (
	"slices"
	"strings"
)

// Mode changes what the rules decide.
type Mode int

// Modes.
const (
	// Default leaves the decision to the rules.
	Default Mode = iota
	// AcceptEdits allows changes of files in the workspace that a rule asks about.
	AcceptEdits
	// Plan denies everything that may change something.
	Plan
	// Bypass allows what a rule asks about.
	Bypass
)

// modes are the names of the modes.
var modes = []string{"default", "accept-edits", "plan", "bypass"}

// String returns the mode's name.
func (m Mode) String() string { return modes[m] }

// bash is the tool that runs commands.
const bash = "Bash"

// exitPlanMode is the tool with which the model presents its plan. The mode plan allows it
// if no rule restricts it: without it the turn could not leave the mode.
const exitPlanMode = "ExitPlanMode"

// planners are tools that change nothing but what the session itself keeps. The calls of a subagent
// are decided by themselves, in the same mode.
var planners = []string{"Skill", "Task", "TodoWrite", "AskUserQuestion", exitPlanMode}

// editors are the tools that change files.
var editors = []string{"Write", "Edit", "MultiEdit"}

func edits(tool string) bool { return slices.Contains(editors, tool) }

// change applies the mode to a decision of the rules. It makes no denied call run, and
// keeps the order of decisions: a stricter one stays at least as strict.
func (m Mode) change(d Decision, s *subject) Decision {
	switch {
	case m == Plan && d.Kind != Deny && !s.harmless():
		return Decision{Kind: Deny, Rule: "the mode plan denies changes" + s.unread(), Planning: true}
	case d.Kind != Ask:
		return d
	case s.plans():
		return Decision{Kind: Allow, Rule: "the mode plan asks about the plan itself"}
	case m == Bypass, m == AcceptEdits && edits(s.Tool) && s.inside && !d.reading:
		return Decision{Kind: Allow, Rule: "the mode " + m.String() + " allows: " + d.Rule}
	}
	return d
}

// plans reports whether the call presents the plan in the mode plan.
func (s *subject) plans() bool { return s.mode == Plan && s.Tool == exitPlanMode }

// harmless reports whether a call changes nothing.
func (s *subject) harmless() bool {
	if s.Tool != bash {
		return s.ReadOnly || slices.Contains(planners, s.Tool)
	}
	return s.unread() == ""
}

// readers are programs that only read, whatever their arguments are. A program that can
// write to a file it is told, or run another program, is none.
var readers = []string{"basename", "cat", "cut", "dirname", "echo", "false", "grep", "head", "ls", "nl", "pwd", "readlink", "realpath", "stat", "tail", "tr", "true", "wc"}

// unread says what keeps a command from being one that only reads.
func (s *subject) unread() string {
	if s.Tool != bash {
		return ""
	}
	if s.parsed.complex != "" {
		return " (" + s.parsed.complex + ")"
	}
	for _, c := range s.parsed.commands {
		if program, _, _ := strings.Cut(c.words, " "); c.dynamic || !slices.Contains(readers, program) {
			return " (it is not certain that " + clip(c.raw) + " only reads)"
		}
	}
	return ""
}
