// Package demo has the workspace of the demonstration: a word counter in POSIX
// shell with a fault, and its test. The scripted model `scripted:demo` repairs
// it. The package is not internal, because the command line fills the
// workspace.
package demo

import (
	"embed"
	"io/fs"
)

// Prompt is the message of the person in the demonstration.
const Prompt = "The test in test.sh fails. Find out why and repair the program."

// Model is the model that plays the demonstration.
const Model = "scripted:demo"

//go:embed workspace
var workspace embed.FS

// Files returns the files to put into the demonstration's workspace.
func Files() fs.FS {
	sub, err := fs.Sub(workspace, "workspace")
	if err != nil {
		panic("demo: the embedded folder has a wrong name: " + err.Error()) // cannot happen: the name is fixed above
	}
	return sub
}
