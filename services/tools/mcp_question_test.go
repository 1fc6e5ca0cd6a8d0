package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

const form = `{"properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],"type":"object"}`

// asks is a tool that asks a person: in its result where the server is new, within the call where it is old.
func asks(params ...*mcp.ElicitParams) handler {
	return func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var said []string
		tell := func(r *mcp.ElicitResult) { said = append(said, fmt.Sprintf("%s %v", r.Action, r.Content)) }
		if q.ProtocolVersion() < "2026-07-28" {
			for _, p := range params {
				r, err := q.Session.Elicit(ctx, p)
				if err != nil {
					return nil, err
				}
				tell(r)
			}
			return says(strings.Join(said, ", "))(ctx, q)
		}
		if q.Params.RequestState == "" {
			requests := mcp.InputRequestMap{}
			for i, p := range params {
				requests[fmt.Sprint("k", i)] = p
			}
			return &mcp.CallToolResult{InputRequests: requests, RequestState: "the state <&>"}, nil
		}
		if q.Params.RequestState != "the state <&>" {
			return nil, fmt.Errorf("the state came back as %q", q.Params.RequestState)
		}
		for i := range params {
			tell(q.Params.InputResponses[fmt.Sprint("k", i)].(*mcp.ElicitResult))
		}
		return says(strings.Join(said, ", "))(ctx, q)
	}
}

func answered(q *toolsv1.CallToolRequest, id string, action commonv1.QuestionAction, content string) *toolsv1.CallToolRequest {
	q = proto.CloneOf(q)
	q.Answer = &commonv1.QuestionAnswer{Id: id, Action: action, ContentJson: content}
	return q
}

const (
	accept  = commonv1.QuestionAction_QUESTION_ACTION_ACCEPT
	decline = commonv1.QuestionAction_QUESTION_ACTION_DECLINE
	dismiss = commonv1.QuestionAction_QUESTION_ACTION_CANCEL
)

// question makes a call that ends with a question.
func (f *fixture) question(q *toolsv1.CallToolRequest) *commonv1.Question {
	f.t.Helper()
	a, err := f.call(q)
	if err != nil || a.question == nil {
		f.t.Fatalf("got %v, %q, %v; want a question", a.result, a.text(), err)
	}
	return a.question
}

func TestAServerAsksAPerson(t *testing.T) {
	for era, modern := range eras {
		for name, c := range map[string]struct {
			action  commonv1.QuestionAction
			content string
			says    string
		}{
			"who answers":  {accept, `{"city":"Rome","days":3}`, "accept map[city:Rome days:3]"},
			"who declines": {decline, "", "decline map[]"},
			"who cancels":  {dismiss, "", "cancel map[]"},
		} {
			t.Run(era+" "+name, func(t *testing.T) {
				r, f := newRemote(t, modern), local(t)
				r.tool("ask", object, asks(&mcp.ElicitParams{Mode: "form", Message: "Where to?", RequestedSchema: json.RawMessage(form)}))
				q := mcpCall("c", "mcp__x__ask", `{}`, r.as("x"))
				asked := f.question(q)
				if asked.GetMessage() != "Where to?" || asked.GetSchemaJson() != form || asked.GetServer() != "x" || asked.GetId() == "" || asked.GetUrl() != "" {
					t.Errorf("the question is %v", asked)
				}
				if again := f.question(q); !proto.Equal(again, asked) {
					t.Errorf("asked again, the question is %v", again)
				}
				f.refused(answered(q, "other", c.action, c.content), "QUESTION_MISMATCH")
				f.refused(answered(q, asked.GetId(), accept, `{"days":"three"}`), "ANSWER_INVALID")
				f.refused(answered(q, asked.GetId(), 0, ""), "ANSWER_INVALID")
				right := answered(q, asked.GetId(), c.action, c.content)
				if got := f.must(right, ok); got.text() != c.says {
					t.Errorf("got %q, want %q", got.text(), c.says)
				}
				if got := f.must(right, ok); got.text() != c.says || got.pieces != 1 {
					t.Errorf("answered again: %q", got.text())
				}
			})
		}
	}
}

func TestAServerAsksSeveralQuestions(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			r.tool("ask", object, asks(
				&mcp.ElicitParams{Mode: "form", Message: "First?", RequestedSchema: json.RawMessage(form)},
				&mcp.ElicitParams{Mode: "url", Message: "Visit this", URL: "https://example.com/login?x=1", ElicitationID: "e1"},
			))
			q := mcpCall("c", "mcp__x__ask", `{}`, r.as("x"))
			first := f.question(q)
			second := f.question(answered(q, first.GetId(), accept, `{"city":"Oslo"}`))
			if second.GetUrl() != "https://example.com/login?x=1" || second.GetSchemaJson() != "" || second.GetId() == first.GetId() {
				t.Errorf("the second question is %v", second)
			}
			if got := f.must(answered(q, second.GetId(), accept, ""), ok); got.text() != "accept map[city:Oslo], accept map[]" {
				t.Errorf("got %q", got.text())
			}
		})
	}
}

func TestAQuestionOutlivesTheService(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	r.tool("ask", object, asks(&mcp.ElicitParams{Mode: "form", Message: "Where to?", RequestedSchema: json.RawMessage(form)}))
	q := mcpCall("c", "mcp__x__ask", `{}`, r.as("x"))
	asked := f.question(q)
	f.stop()
	f.start()
	if again := f.question(q); !proto.Equal(again, asked) {
		t.Errorf("the question is %v", again)
	}
	if got := f.must(answered(q, asked.GetId(), accept, `{"city":"Bonn"}`), ok); got.text() != "accept map[city:Bonn]" {
		t.Errorf("got %q", got.text())
	}
}

func TestACallWithAQuestionIsCancelled(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			r.tool("ask", object, asks(&mcp.ElicitParams{Mode: "form", Message: "Where to?", RequestedSchema: json.RawMessage(form)}))
			q := mcpCall("c", "mcp__x__ask", `{}`, r.as("x"))
			asked := f.question(q)
			resp, err := f.calls.CancelCall(t.Context(), &toolsv1.CancelCallRequest{Call: q.GetCall()})
			if err != nil || resp.GetResult().GetOutcome() != toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED {
				t.Fatalf("got %v, %v", resp, err)
			}
			f.refused(answered(q, asked.GetId(), accept, `{"city":"Bonn"}`), "CALL_CANCELLED")
		})
	}
}

func TestAServerThatAsksForAModelGetsNone(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	r.tool("ask", object, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		//nolint:staticcheck // servers may still ask for it
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"k": &mcp.CreateMessageParams{MaxTokens: 1}}, RequestState: "s"}, nil
	})
	if got := f.must(mcpCall("c", "mcp__x__ask", `{}`, r.as("x")), failed); !strings.Contains(got.text(), "MCP server x") {
		t.Errorf("got %q", got.text())
	}
}
