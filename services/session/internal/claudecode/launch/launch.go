// Package launch is what a session and the relay in its sandbox say to each other before the CLI runs.
//
// Both speak yamux over the relay's standard input and output. The first stream, which the session opens,
// begins with a Start as one line of JSON. After it, it is the CLI's standard input and output. The relay
// opens a stream for each connection that the CLI makes to its model.
package launch

import (
	"io"
	"time"

	"github.com/hashicorp/yamux"
)

// Dir stands in arguments and variables for the private folder that the relay makes.
const Dir = "$DIR"

// Socket is the name of the socket of the model in that folder.
const Socket = "model.sock"

// Start says what the relay is to run.
type Start struct {
	Program string   `json:"program"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	// Session and Transcript are the CLI's own name of the conversation and its file; empty: a new one.
	Session    string `json:"session,omitempty"`
	Transcript []byte `json:"transcript,omitempty"`
	// Version asks the relay to send what the program says to --version in a line of its own, before it runs.
	Version bool `json:"version,omitempty"`
}

// Type is the type of the relay's own lines on the first stream.
const Type = "fairlead_relay"

// Line is a line of the relay on the first stream. The first may be the program's version. The last says how the
// program ended, or why it did not start.
type Line struct {
	Type string `json:"type"`
	// Version is what the program says to --version; empty in the last line.
	Version string `json:"version,omitempty"`
	// Missing says that there is no such program.
	Missing bool `json:"missing,omitempty"`
	// Fault is why the program could not be started.
	Fault string `json:"fault,omitempty"`
	// Exit says how it ended, and Words is what it printed last on its standard error.
	Exit  string `json:"exit,omitempty"`
	Words string `json:"words,omitempty"`
}

// Config returns the settings of both ends. A sandbox stands still during a snapshot, so silence is no fault.
func Config() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive, c.ConnectionWriteTimeout, c.StreamCloseTimeout = false, time.Minute, 0
	c.LogOutput = io.Discard
	return c
}
