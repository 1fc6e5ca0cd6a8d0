package agui

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// feedbackInput is a person's judgement, as an event of the type META.
type feedbackInput struct {
	Type     string          `json:"type"`
	MetaType string          `json:"metaType"`
	Payload  json.RawMessage `json:"payload"`
	ThreadID string          `json:"threadId"`
	Snake    string          `json:"thread_id"`
	Time     json.Number     `json:"ts"`
}

// feedbackPayload is what is read of a judgement's payload. The log has the rest, such as the transcript.
type feedbackPayload struct {
	MessageID string `json:"messageId"`
	RunID     string `json:"runId"`
	Comment   string `json:"comment"`
	Reason    string `json:"reason"`
}

// judgements are the values of judgements by the protocol's names.
var judgements = map[string]sessionv1.FeedbackValue{
	"thumbs_up": sessionv1.FeedbackValue_FEEDBACK_VALUE_POSITIVE, "thumbs_down": sessionv1.FeedbackValue_FEEDBACK_VALUE_NEGATIVE,
}

// feedback keeps a person's judgement of a message, or of a run.
func (s *Server) feedback(w http.ResponseWriter, r *http.Request, agent string) error {
	var in feedbackInput
	if err := s.wire.Decode(w, r, &in); err != nil {
		return err
	}
	id, err := thread(r, in.ThreadID, in.Snake)
	if err != nil {
		return err
	}
	var payload feedbackPayload
	value, known := judgements[in.MetaType]
	switch {
	case in.Type != "META":
		return bad("type", `must be "META"`)
	case !known:
		return bad("metaType", `must be "thumbs_up" or "thumbs_down"`)
	case len(in.Payload) > 0 && json.Unmarshal(in.Payload, &payload) != nil:
		return bad("payload", "must be an object; its messageId, runId, comment and reason are texts")
	}
	session, err := s.wire.Find(r.Context(), place(agent, id))
	if err != nil {
		return err
	}
	f := &sessionv1.Feedback{Value: value, Comment: payload.Comment}
	if payload.Reason != "" {
		f.Comment = strings.TrimPrefix(f.Comment+"\nReason: "+payload.Reason, "\n")
	}
	if f.Turn, f.Step, err = s.judged(r, session.GetName(), payload); err != nil {
		return err
	}
	made, err := s.feedbacks.CreateFeedback(r.Context(), &sessionv1.CreateFeedbackRequest{Parent: session.GetName(), Feedback: f, RequestId: in.key(r)})
	if err != nil {
		return err
	}
	return write(w, event{"type": "RAW", "event": event{
		"name": "fairlead.feedback", "metaType": in.MetaType, "payload": in.Payload, "recorded": true,
		"feedback": made.GetFeedback().GetName(), "traceId": made.GetFeedback().GetTraceId(),
	}})
}

// key returns the idempotency key of a judgement: that of the client, or its time with its content. Without both, each
// request is a judgement of its own, because a person may change their mind and change it back.
func (in feedbackInput) key(r *http.Request) string {
	if k := r.Header.Get("Idempotency-Key"); k != "" || in.Time == "" {
		return k
	}
	sum := sha256.Sum256([]byte(in.Time.String() + "\x00" + in.MetaType + "\x00" + string(in.Payload)))
	return "agui-feedback-" + hex.EncodeToString(sum[:16])
}

// ownMessage matches the ids that the encoder gives to messages and results: those of a turn and a step.
var ownMessage = regexp.MustCompile(`^([0-9a-z]{26})[-.](?:note|([0-9]{1,9}))[-.]`)

// judged returns the turn and the step of a message, or the turn of a run.
func (s *Server) judged(r *http.Request, session string, of feedbackPayload) (turn string, step int32, err error) {
	if of.MessageID == "" && of.RunID != "" {
		made, err := s.wire.Sessions.ListTurns(r.Context(), &sessionv1.ListTurnsRequest{Parent: session, OfRequest: wire.RequestID("ag-ui", of.RunID)})
		if err == nil && len(made.GetTurns()) == 0 {
			err = bad("payload.runId", "names no run that began with a message in this thread")
		}
		if err != nil {
			return "", 0, err
		}
		return made.GetTurns()[0].GetName(), 0, nil
	}
	m := ownMessage.FindStringSubmatch(of.MessageID)
	if m == nil {
		return "", 0, bad("payload.messageId", "must be the id of one of the agent's messages; payload.runId in its place judges a whole run")
	}
	n, _ := strconv.ParseInt("0"+m[2], 10, 32)
	return session + "/turns/" + m[1], int32(n), nil
}
