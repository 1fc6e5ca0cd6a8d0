package script

import (
	"slices"
	"strings"
)

// Question is what a person is asked, and Labels are the answers to choose from.
const Question = "Which?"

// Labels are those of Question.
var Labels = [...]string{"left", "right"}

func question() Call {
	var options []map[string]any
	for _, l := range Labels {
		options = append(options, map[string]any{"label": l, "description": "the " + l + " one"})
	}
	item := map[string]any{"question": Question, "header": "Side", "options": options}
	return Call{Tool: "AskUserQuestion", Input: map[string]any{"questions": []any{item}}, Asks: true}
}

// Edit returns the arguments of a call with other effects in place of those of the command, as a person may
// change them.
func Edit(arguments, who string) string {
	for _, line := range Lines(arguments) {
		arguments = strings.ReplaceAll(arguments, "'"+line+"'", "'"+line+"~"+who+"'")
	}
	return arguments
}

// Lines returns the parts of a command in single quotes that are lines of effects: they name a turn and a
// call.
func Lines(command string) []string {
	var lines []string
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 && strings.Contains(part, "/") && !slices.Contains(lines, part) {
			lines = append(lines, part)
		}
	}
	return lines
}
