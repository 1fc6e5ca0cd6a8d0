package script

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// Task is the tool that gives work to a subagent.
const Task = "Task"

// The subagents of the agent: a helper gives work on to workers.
const (
	helper = "helper"
	worker = "worker"
)

// subplans is how many different turns of each kind of subagent there are.
const subplans = 4

// The letters with which the messages of plans begin: those of people, of helpers and of workers.
var letters = [...]string{"p", "q", "r"}

// task gives a part of the work to a subagent.
func task(r *rand.Rand, to string, step, n int) Call {
	letter := letters[1]
	if to == worker {
		letter = letters[2]
	}
	prompt := prefix(letter, r.IntN(subplans)) + fmt.Sprintf("%s/%d.%d", userText, step, n)
	return Call{Tool: Task, Input: map[string]any{"description": "a part", "prompt": prompt, "subagent_type": to}, Prompt: prompt}
}

// subplan is a turn of a subagent. A helper's gives work on.
func subplan(r *rand.Rand, kind string) Plan {
	first := Step{Delay: "3ms", Text: pieces(r, 1, 1+r.IntN(4))}
	first.Calls = append(first.Calls, command(r, 1, 1))
	if kind == helper {
		for range 1 + r.IntN(2) {
			first.Calls = append(first.Calls, task(r, worker, 1, len(first.Calls)+1))
		}
	}
	p := Plan{Steps: []Step{first}}
	if r.IntN(2) == 0 {
		second := Step{Delay: "3ms", Text: pieces(r, 2, 2), Calls: []Call{command(r, 2, 1)}}
		if kind == helper {
			second.Calls = append(second.Calls, asked(r, 2, 2))
		}
		p.Steps = append(p.Steps, second)
	}
	p.Steps = append(p.Steps, last(r))
	return p
}

// PromptIn returns the prompt in the arguments of a call that gives work to a subagent.
func PromptIn(arguments string) string {
	var task struct{ Prompt string }
	_ = json.Unmarshal([]byte(arguments), &task) // no prompt is none
	return task.Prompt
}

// Subagents are the agent's, in YAML.
func Subagents() string {
	return fmt.Sprintf("[{name: %s, description: Gives work on., prompt: Give it on., tools: [Bash, Task]}, {name: %s, description: Works., prompt: Work., tools: [Bash]}]", helper, worker)
}
