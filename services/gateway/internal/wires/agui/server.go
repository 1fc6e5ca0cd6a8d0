// Package agui serves the protocol AG-UI, version 1.0: each thread is a session, and each run a turn or, after a pause,
// the rest of one.
//
// An Encoder makes the events of a run from the session's log; the inputs make requests of ours from a client's body.
// Nothing of a client's history is trusted: of its messages only the new ones at the end, and the results of its own
// tools, reach the session.
package agui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// Server serves the protocol. It is safe for concurrent use.
type Server struct {
	wire       *wire.Server
	agents     sessionv1.AgentServiceClient
	servers    sessionv1.McpServiceClient
	operations toolsv1.OperationServiceClient
	// feedbacks keeps what people think of answers.
	feedbacks sessionv1.FeedbackServiceClient
}

// New returns a Server.
func New(shared *wire.Server, session, tools grpc.ClientConnInterface) *Server {
	return &Server{
		wire: shared, agents: sessionv1.NewAgentServiceClient(session), servers: sessionv1.NewMcpServiceClient(session),
		operations: toolsv1.NewOperationServiceClient(tools), feedbacks: sessionv1.NewFeedbackServiceClient(session),
	}
}

// prefix begins all paths.
const prefix = "/v1/agui/"

// split returns the agent of a path, and the rest behind it.
func split(path string) (agent, rest string, ok bool) {
	tail, ok := strings.CutPrefix(path, prefix)
	agent, rest, _ = strings.Cut(tail, "/")
	return agent, rest, ok && agent != ""
}

// Match implements door.Door.
func (s *Server) Match(method, path string) *door.Route {
	agent, rest, ok := split(path)
	if !ok {
		return nil
	}
	at, to := prefix+"{agent}/"+rest, sides[rest]
	if rest == "" {
		at, to = prefix+"{agent}", side{http.MethodPost, (*Server).run}
	}
	if to.serve == nil {
		return nil
	}
	return door.At(method, at, []string{to.method}, func(w http.ResponseWriter, r *http.Request) error { return to.serve(s, w, r, agent) })
}

// Refuse implements door.Door: the official client shows the status, and takes the body as the error's payload.
func (s *Server) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	f := wire.FaultOf(err)
	f.Headers(w.Header(), codec.ContentType)
	w.WriteHeader(f.Status)
	body := event{"error": f.Message, "message": f.Message}
	if f.Reason != "" {
		body["code"] = f.Reason
	}
	if f.Field != "" {
		body["field"] = f.Field
	}
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it is all text; the client may have gone
}

// place returns the conversation of a thread.
func place(agent, thread string) wire.Place {
	return wire.Place{Wire: "ag-ui", ID: thread, Agent: agent}
}

// resumePoint returns what the header Last-Event-ID says that the client has.
func resumePoint(r *http.Request) (p position, err error) {
	value := r.Header.Get("Last-Event-ID")
	if value == "" {
		return p, nil
	}
	seq, part, parted := strings.Cut(value, ".")
	if p.seq, err = strconv.ParseInt(seq, 10, 64); err == nil {
		p.part = 1 << 30
		if parted {
			p.part, err = strconv.Atoi(part)
		}
	}
	if err != nil || p.seq < 0 || p.part < 0 {
		return position{}, problem.BadLastEventID(value, "is no id of an event of this stream")
	}
	return p, nil
}

// run begins a run, or shows it again, and streams it.
func (s *Server) run(w http.ResponseWriter, r *http.Request, agent string) error {
	in := &input{}
	after, err := resumePoint(r)
	if err != nil {
		return err
	}
	if err := s.wire.Decode(w, r, in); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	session, err := s.wire.FindOrMake(r.Context(), place(agent, in.ThreadID))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.wire.Timeout)
	defer cancel()
	run, from, err := s.plan(ctx, in, session)
	if waiting, ok := err.(*waitingError); ok { //nolint:errorlint // plan returns it as it is
		return s.sendAll(w, []event{runError("INTERRUPTS_OPEN", waiting.Error())})
	}
	if err != nil {
		return err
	}
	run.ThreadID, run.RunID, run.ParentRunID, run.After, run.Old = in.ThreadID, in.RunID, in.ParentRunID, after, in.old()
	run.Messages, run.HasState, run.HasOwn = in.Messages, in.state() != nil, in.hasOwn()
	return s.stream(w, r, session.GetName(), from, run)
}

// stream sends a run. The turn goes on if the client leaves.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, session string, from int64, run Run) error {
	f := s.wire.Follow(r.Context(), session, from)
	defer f.Close()
	return s.wire.Send(w, r, "ag-ui", f, NewEncoder(run))
}

// sendAll sends a stream that is complete.
func (s *Server) sendAll(w http.ResponseWriter, all []event) error {
	body, err := appendEvents(nil, 0, all, position{})
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", codec.SSE)
	h.Set("Cache-Control", "no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // the client may have gone
	return nil
}

// waitingError says that the thread waits for an answer that a request does not have.
type waitingError struct{ what string }

func (e *waitingError) Error() string {
	return fmt.Sprintf("The thread waits for %s. Answer that first, with resume or a message of the role tool.", e.what)
}
