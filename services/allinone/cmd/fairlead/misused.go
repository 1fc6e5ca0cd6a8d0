package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// misused says which help describes the command of a wrong command line, and
// which flag is near an unknown one.
func misused(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil || parse.Context.Selected() == nil {
		return fmt.Errorf("%w (fairlead --help lists the commands)", err)
	}
	command := parse.Context.Selected()
	for command.Type == kong.ArgumentNode {
		command = command.Parent
	}
	near := ""
	if _, flag, ok := strings.Cut(err.Error(), "unknown flag --"); ok && !strings.Contains(flag, "did you mean") {
		near = similarFlag(command, strings.TrimSpace(flag))
	}
	return fmt.Errorf("%w%s (%s --help lists what it takes)", err, near, command.FullPath())
}

// similarFlag proposes a flag of the command that shares a word with name.
func similarFlag(command *kong.Node, name string) string {
	words := strings.Split(name, "-")
	for _, group := range command.AllFlags(true) {
		for _, f := range group {
			for word := range strings.SplitSeq(f.Name, "-") {
				if slices.Contains(words, word) {
					return fmt.Sprintf(", did you mean \"--%s\"?", f.Name)
				}
			}
		}
	}
	return ""
}
