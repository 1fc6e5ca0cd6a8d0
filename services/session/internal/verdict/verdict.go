// Package verdict reads an agent's report about its own work: from a call of
// the tool finish, or from a header of its final message.
package verdict

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
)

// Tool is the name of the session's own tool.
const Tool = "finish"

// ToolDescription tells the model what the tool is for.
const ToolDescription = "Ends your work on the user's message and says how it went. " +
	"Call it once, when nothing is left to do or nothing more can be done; calls in the same message are finished first. " +
	"Be honest: PARTIAL if a part is not done, FAILED if the task is not done."

// Verdict is an agent's report about its work.
type Verdict struct {
	State      sessionv1.TurnState // COMPLETE, PARTIAL or FAILED
	Summary    string              // for the user; in a header, the reason
	OutputJSON string              // structured output; empty: none
}

var states = map[string]sessionv1.TurnState{
	"COMPLETE": sessionv1.TurnState_TURN_STATE_COMPLETE,
	"PARTIAL":  sessionv1.TurnState_TURN_STATE_PARTIAL,
	"FAILED":   sessionv1.TurnState_TURN_STATE_FAILED,
}

// Error returns why the turn did not end COMPLETE, in the agent's words; nil if it
// did.
func (v Verdict) Error() *sessionv1.TurnError {
	var reason, message string
	switch v.State {
	case sessionv1.TurnState_TURN_STATE_PARTIAL:
		reason, message = "AGENT_PARTIAL", "The agent says that it did the task in part"
	case sessionv1.TurnState_TURN_STATE_FAILED:
		reason, message = "AGENT_FAILED", "The agent says that it could not do the task"
	default:
		return nil
	}
	if why := strings.TrimSpace(v.Summary); why != "" {
		message += ": " + why
	} else {
		message += "."
	}
	return &sessionv1.TurnError{Reason: reason, Message: message}
}

// ToolSchema returns the schema of the tool's arguments for an agent with the
// output schema s, which may be nil. The output's schema is embedded as it was
// written.
func ToolSchema(s *Schema) json.RawMessage {
	output := ""
	if s != nil {
		output = `"output":` + s.text + `,`
	}
	return json.RawMessage(`{"additionalProperties":false,"properties":{` + output + ownProperties + `},"required":["request_status","summary"],"type":"object"}`)
}

// ownProperties are the arguments of every call of the tool.
const ownProperties = `"request_status":{"description":"How much of the task is done.","enum":["COMPLETE","PARTIAL","FAILED"],"type":"string"},` +
	`"summary":{"description":"What you did and found, for the user; unless it is COMPLETE, what is missing and why.","type":"string"}`

// Parse reads the tool's arguments. Its error is for the model, which may call
// again. A verdict of COMPLETE needs the output that s describes; the others may
// leave it out.
func Parse(arguments string, s *Schema) (Verdict, error) {
	args, err := schema.ParseArguments(arguments)
	if err != nil {
		return Verdict{}, err
	}
	for name := range args.Value {
		if name != "request_status" && name != "summary" && name != "output" {
			return Verdict{}, fmt.Errorf("%s has no argument %q", Tool, clip(name, 50))
		}
	}
	status, ok := args.Value["request_status"].(string)
	summary, said := args.Value["summary"].(string)
	if !ok || !said {
		return Verdict{}, errors.New("request_status and summary are both needed")
	}
	state, ok := states[status]
	if !ok {
		return Verdict{}, fmt.Errorf("request_status is %q and must be COMPLETE, PARTIAL or FAILED", clip(status, 50))
	}
	v := Verdict{State: state, Summary: summary}
	output, given := args.Value["output"]
	given = given && (s == nil || output != nil || s.check(output) == nil)
	switch {
	case s == nil && given:
		return Verdict{}, errors.New("output is not asked for; say what you have to say in summary")
	case s != nil && !given && state == sessionv1.TurnState_TURN_STATE_COMPLETE:
		return Verdict{}, errors.New("output is missing; it is needed when request_status is COMPLETE")
	case given:
		if err := s.check(output); err != nil {
			return Verdict{}, err
		}
		v.OutputJSON, err = outputText(arguments)
	}
	return v, err
}

// outputText returns the output as the agent wrote it.
func outputText(arguments string) (string, error) {
	var args map[string]json.RawMessage
	err := json.Unmarshal([]byte(arguments), &args)
	return string(args["output"]), err
}
