package script

import (
	"encoding/json"
	"fmt"
)

// The names of the MCP servers' tools. There counts lines itself, Here appends them to Effects.
const (
	There = "mcp__counter__note"
	Here  = "mcp__local__note"
)

func noteThere(step, n int) Call {
	line := fmt.Sprintf("%s/%d.%d", userText, step, n)
	return Call{Tool: There, Input: map[string]any{"line": line}, Noted: line}
}

func noteHere(step, n int) Call {
	line := fmt.Sprintf("%s/%d.%d", userText, step, n)
	return Call{Tool: Here, Input: map[string]any{"line": line}, Effect: line}
}

// Appends returns the lines that a call of a tool appends to Effects.
func Appends(tool, arguments string) []string {
	var note struct{ Line string }
	switch {
	case tool == There || tool == Task:
		return nil
	case tool == Here && json.Unmarshal([]byte(arguments), &note) == nil:
		return []string{note.Line}
	}
	return Lines(arguments)
}
