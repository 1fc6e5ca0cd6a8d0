package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

func progress(message string) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Progress{Progress: &toolsv1.CallProgress{Message: message}}}
}

func output(stream, data string) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Output{Output: &toolsv1.CallOutput{Stream: stream, Data: []byte(data)}}}
}

// tell runs the tool Tell: it sends a part and blocks; each attached client gets all of it
// again, in other pieces, and the rest.
func (p *peers) tell(id string, stream grpc.ServerStreamingServer[toolsv1.CallToolResponse]) error {
	p.mu.Lock()
	p.executed[id] = 1
	attached := p.telling
	p.telling = true
	p.mu.Unlock()
	pieces := []*toolsv1.CallToolResponse{
		decide(toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW),
		output("stdout", "one"), progress("half"), output("stderr", "bad"), output("stdout", ", two"),
	}
	if attached {
		pieces = []*toolsv1.CallToolResponse{
			output("stdout", "on"), output("stdout", "e, two, th"), progress("half"), progress("nearly"), output("stderr", "bad"), output("stderr", " luck"), output("stdout", "ree"),
			result(p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_OK, "told")),
		}
	}
	for _, piece := range pieces {
		if err := stream.Send(piece); err != nil {
			return err
		}
	}
	if attached {
		return nil
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func TestOutputOfACallIsInTheLogOnceAndWholeAcrossARestart(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - when: tell
    steps: [{text: [Wait], tools: [{name: Tell, input: {}}]}, {text: [done]}]
`)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "tell")
	f.followUntil(ctx, t, s, func(e *sessionv1.Event) bool { return string(e.GetToolCallOutputDelta().GetData()) == ", two" })
	f.restart(t)
	f.waitForEnd(ctx, t, turn.Name)
	told := map[string]string{}
	var words []string
	for _, e := range f.log(ctx, t, s) {
		if d := e.GetToolCallOutputDelta(); d != nil {
			told[d.Stream] += string(d.Data)
		}
		if p := e.GetToolCallProgress(); p != nil {
			words = append(words, p.Message)
		}
	}
	if d := cmp.Diff(map[string]string{"stdout": "one, two, three", "stderr": "bad luck"}, told); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"half", "nearly"}, words); d != "" {
		t.Error(d)
	}
}
