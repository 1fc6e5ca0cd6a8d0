package store

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Beginning is what a session begins with.
type Beginning struct {
	// First is the command of the first turn, if any. Its request has no id.
	First *Submit
	// Child is set for a subagent's session: ErrStaleEpoch when the parent's lease is lost, and
	// ErrManySubagents.
	Child *Child
}

// Child is what makes a session a subagent's.
type Child struct {
	Parent Lease // of the session of the call
	Call   *sessionv1.ParentCall
	Most   int // of sessions with an unfinished turn below the same root, this one included
	Job    Job // is put with the session
}

// ParentCall returns the call, or nil without a child.
func (c *Child) ParentCall() *sessionv1.ParentCall {
	if c == nil {
		return nil
	}
	return c.Call
}
