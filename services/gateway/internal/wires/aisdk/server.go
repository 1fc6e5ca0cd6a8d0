// Package aisdk serves the UI message stream of the Vercel AI SDK: what `useChat` with its DefaultChatTransport speaks.
//
// A conversation is a session, under the id that the client chose. A turn is one message whose id is the turn's, so
// any replica makes the same message of the same log. A client that comes back gets the message from its start.
package aisdk

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// name is the wire's, in keys of sessions and in metrics.
const name = "ai-sdk"

// root is the path of the wire.
const root = "/v1/ai-sdk/chat"

// Server serves the wire. It is safe for concurrent use.
type Server struct {
	*wire.Server
	points sessionv1.CheckpointServiceClient
}

// New returns a Server.
func New(s *wire.Server, session grpc.ClientConnInterface) *Server {
	return &Server{s, sessionv1.NewCheckpointServiceClient(session)}
}

// Match implements door.Door.
func (s *Server) Match(method, path string) *door.Route {
	rest, ok := strings.CutPrefix(path, root)
	switch {
	case !ok || rest != "" && !strings.HasPrefix(rest, "/"):
		return nil
	case strings.Trim(rest, "/") == "":
		return door.At(method, root, []string{http.MethodPost}, s.serve)
	case strings.HasSuffix(rest, "/stream"):
		return door.At(method, root+"/{id}/stream", []string{http.MethodGet}, s.serve)
	case strings.HasSuffix(rest, "/stop"):
		return door.At(method, root+"/{id}/stop", []string{http.MethodPost}, s.serve)
	default:
		return door.At(method, root+"/{id}", []string{http.MethodGet}, s.serve)
	}
}

// Refuse implements door.Door: clients show the body of a refusal.
func (*Server) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	f := wire.FaultOf(err)
	f.Headers(w.Header(), "text/plain; charset=utf-8")
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Message)) // an error means that the client has gone
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	form, err := formOf(r.URL.Query())
	if err != nil {
		return err
	}
	rest := strings.Trim(strings.TrimPrefix(r.URL.EscapedPath(), root), "/")
	if rest == "" {
		return s.post(w, r, form)
	}
	escaped, action, _ := strings.Cut(rest, "/")
	chat, err := url.PathUnescape(escaped)
	if err != nil || action != "" && action != "stream" && action != "stop" {
		return problem.PathNotFound(r.URL.Path)
	}
	place := wire.Place{Wire: name, ID: chat}
	switch action {
	case "stream":
		return s.resume(w, r, place, form)
	case "stop":
		return s.stop(w, r, place)
	default:
		return s.messages(w, r, place, form)
	}
}

// formOf reads how the application wants its messages, from the address that it uses.
func formOf(q url.Values) (f Form, err error) {
	switch v := q.Get("tools"); v {
	case "", "dynamic":
	case "typed":
		f.Typed = true
	default:
		return f, problem.BadParameter("tools", "is dynamic or typed")
	}
	switch v := q.Get("version"); v {
	case "", "6", "7":
	case "5":
		f.Version = 5
	default:
		return f, problem.BadParameter("version", "is 5, 6 or 7: the major version of the client's package ai")
	}
	return f, nil
}

// post takes a message, or answers to what a turn waits for.
func (s *Server) post(w http.ResponseWriter, r *http.Request, f Form) error {
	var req request
	if err := s.Decode(w, r, &req); err != nil {
		return err
	}
	last, at, err := req.last()
	if err != nil {
		return err
	}
	place := wire.Place{Wire: name, ID: req.ID, Agent: cmp.Or(r.URL.Query().Get("agent"), req.Agent)}
	switch {
	case last.Role == "user":
		return s.submit(w, r, &req, last, at, place, f)
	case last.Role == "assistant" && req.Trigger != regenerate:
		return s.goOn(w, r, last, at, place, f)
	default:
		return problem.BodyMalformed(at+".role", at+".role must be user, or assistant where the browser answers calls")
	}
}

// resume replays the message of the active turn from its start and follows it. With nothing running there is nothing to
// say, also for a conversation that does not exist yet: every page asks when it is loaded.
func (s *Server) resume(w http.ResponseWriter, r *http.Request, place wire.Place, f Form) error {
	active, session, err := s.active(r, place)
	if apierr.Code(err) == codes.NotFound || err == nil && (active == nil || active.GetState() == sessionv1.TurnState_TURN_STATE_WAITING) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	return s.send(w, r, active, &answer{turn: newTurn(active.GetName(), f), until: session.GetLastSeq()})
}

// active returns the turn that is active in a session, which may wait; nil if none is.
func (s *Server) active(r *http.Request, place wire.Place) (*sessionv1.Turn, *sessionv1.Session, error) {
	session, err := s.Find(r.Context(), place)
	if err != nil || session.GetActiveTurn() == "" {
		return nil, session, err
	}
	got, err := s.Sessions.GetTurn(r.Context(), &sessionv1.GetTurnRequest{Name: session.GetActiveTurn()})
	if err != nil || got.GetTurn().GetCall() != nil { // a call without the model is no message
		return nil, session, err
	}
	return got.GetTurn(), session, nil
}

// send answers with a turn.
func (s *Server) send(w http.ResponseWriter, r *http.Request, t *sessionv1.Turn, a *answer) error {
	session, _, _ := strings.Cut(t.GetName(), "/turns/")
	w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	follower := s.Follow(r.Context(), session, t.GetAfterSeq())
	defer follower.Close()
	return s.Send(w, r, name, follower, a)
}

// stop interrupts the active turn and empties the queue.
func (s *Server) stop(w http.ResponseWriter, r *http.Request, place wire.Place) error {
	session, err := s.Find(r.Context(), place)
	if err != nil {
		return err
	}
	stopped, err := s.Sessions.InterruptSession(r.Context(), &sessionv1.InterruptSessionRequest{Name: session.GetName(), CancelQueued: true, RequestId: id.New()})
	if err != nil {
		return err
	}
	return writeJSON(w, map[string]any{"stopped": stopped.GetTurn() != ""})
}

// messages returns the conversation. One that does not exist yet has no messages.
func (s *Server) messages(w http.ResponseWriter, r *http.Request, place wire.Place, f Form) error {
	active, session, err := s.active(r, place)
	if apierr.Code(err) == codes.NotFound {
		return writeJSON(w, []uiMessage{})
	}
	if err != nil {
		return err
	}
	events, err := s.Events(r.Context(), session.GetName(), 0, session.GetLastSeq())
	if err != nil {
		return err
	}
	running := ""
	if active.GetState() == sessionv1.TurnState_TURN_STATE_RUNNING {
		running = active.GetName() // the client gets it by the stream
	}
	return writeJSON(w, history(events, running, f))
}

func writeJSON(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // as above
	return nil
}
