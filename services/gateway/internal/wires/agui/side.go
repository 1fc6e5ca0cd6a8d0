package agui

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// side is a route besides runs.
type side struct {
	method string
	serve  func(s *Server, w http.ResponseWriter, r *http.Request, agent string) error
}

// sides are the routes behind that of an agent.
var sides = map[string]side{
	"events":       {http.MethodGet, (*Server).events},
	"health":       {http.MethodGet, (*Server).health},
	"capabilities": {http.MethodGet, (*Server).capabilities},
	"tasks":        {http.MethodGet, (*Server).tasks},
	"mcp/status":   {http.MethodGet, (*Server).mcpStatus},
	"export":       {http.MethodGet, (*Server).export},
	"interrupt":    {http.MethodPost, (*Server).interrupt},
	"tasks/stop":   {http.MethodPost, (*Server).stopTask},
	"model":        {http.MethodPost, (*Server).model},
	"clone":        {http.MethodPost, (*Server).clone},
	"feedback":     {http.MethodPost, (*Server).feedback},
}

// sideInput is the body of a route besides runs.
type sideInput struct {
	ThreadID string `json:"threadId"`
	Snake    string `json:"thread_id"`
	Task     string `json:"taskId"`
	Model    string `json:"model"`
	Title    string `json:"title"`
}

// found reads the body of a request and finds its thread.
func (s *Server) found(w http.ResponseWriter, r *http.Request, agent string) (*sessionv1.Session, sideInput, error) {
	var in sideInput
	if r.Method == http.MethodPost && r.ContentLength != 0 { // the query may say all
		if err := s.wire.Decode(w, r, &in); err != nil {
			return nil, in, err
		}
	}
	id, err := thread(r, in.ThreadID, in.Snake)
	if err != nil {
		return nil, in, err
	}
	in.ThreadID = id
	session, err := s.wire.Find(r.Context(), place(agent, in.ThreadID))
	return session, in, err
}

// write answers with JSON.
func write(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", codec.ContentType)
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(v)
}

// writeMessage answers with a message of ours.
func writeMessage(w http.ResponseWriter, m proto.Message) error {
	b, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	return write(w, json.RawMessage(b))
}

// health says that the agent can be talked to.
func (s *Server) health(w http.ResponseWriter, r *http.Request, agent string) error {
	if _, err := s.agents.GetAgent(r.Context(), &sessionv1.GetAgentRequest{Name: "agents/" + agent}); err != nil {
		return err
	}
	return write(w, event{"status": "healthy", "agent": agent})
}

// capabilities says what an agent can do, in the form of AgentCapabilities.
func (s *Server) capabilities(w http.ResponseWriter, r *http.Request, agent string) error {
	got, err := s.agents.GetAgent(r.Context(), &sessionv1.GetAgentRequest{Name: "agents/" + agent})
	if err != nil {
		return err
	}
	spec := got.GetAgent()
	delegates := slices.Contains(spec.GetTools(), "Task")
	return write(w, event{
		"identity":       event{"name": agent, "type": "fairlead", "description": spec.GetDescription()},
		"transport":      event{"streaming": true, "websocket": false, "httpBinary": false, "pushNotifications": false, "resumable": true},
		"tools":          event{"supported": true, "clientProvided": true, "parallelCalls": true},
		"output":         event{"structuredOutput": spec.GetOutputSchemaJson() != "", "supportedMimeTypes": []string{"text/plain"}},
		"state":          event{"snapshots": false, "deltas": true, "persistentState": false},
		"multiAgent":     event{"supported": delegates, "delegation": delegates, "handoffs": false},
		"reasoning":      event{"supported": true, "streaming": true, "encrypted": false},
		"multimodal":     event{"input": event{"image": true, "pdf": true, "file": true, "audio": false, "video": false}},
		"execution":      event{"codeExecution": true, "sandboxed": true},
		"humanInTheLoop": event{"supported": true, "approvals": true, "interrupts": true, "approveWithEdits": true, "interventions": true, "feedback": true},
		"custom":         event{"model": spec.GetModel()},
	})
}

// interrupt stops the active run of a thread. With nothing to stop it changes nothing.
func (s *Server) interrupt(w http.ResponseWriter, r *http.Request, agent string) error {
	session, _, err := s.found(w, r, agent)
	if err != nil {
		return err
	}
	stopped, err := s.wire.Sessions.InterruptSession(r.Context(), &sessionv1.InterruptSessionRequest{Name: session.GetName(), CancelQueued: true})
	if err != nil {
		return err
	}
	return write(w, event{"message": "Interrupt signal sent", "turn": stopped.GetTurn()})
}

// tasks lists what goes on beside the runs of a thread.
func (s *Server) tasks(w http.ResponseWriter, r *http.Request, agent string) error {
	session, _, err := s.found(w, r, agent)
	if err != nil {
		return err
	}
	list, err := s.operations.ListOperations(r.Context(), &toolsv1.ListOperationsRequest{Session: session.GetName(), PageToken: r.URL.Query().Get("pageToken")})
	if err != nil {
		return err
	}
	all := []event{}
	for _, o := range list.GetOperations() {
		state := strings.ToLower(strings.TrimPrefix(o.GetState().String(), "OPERATION_STATE_"))
		all = append(all, event{"task_id": wire.LastPart(o.GetName()), "status": state, "tool": o.GetTool(), "tool_call_id": o.GetCallId(), "summary": o.GetProgress(), "output": o.GetOutputHead() + o.GetOutputTail()})
	}
	answer := event{"tasks": all}
	if t := list.GetNextPageToken(); t != "" {
		answer["nextPageToken"] = t
	}
	return write(w, answer)
}

// stopTask stops one of them.
func (s *Server) stopTask(w http.ResponseWriter, r *http.Request, agent string) error {
	session, in, err := s.found(w, r, agent)
	if err != nil {
		return err
	}
	got, err := s.operations.GetOperation(r.Context(), &toolsv1.GetOperationRequest{Name: "operations/" + in.Task})
	if err == nil && got.GetOperation().GetSession() != session.GetName() {
		err = bad("taskId", "is none of this thread")
	}
	if err != nil {
		return err
	}
	if _, err := s.operations.CancelOperation(r.Context(), &toolsv1.CancelOperationRequest{Name: "operations/" + in.Task}); err != nil {
		return err
	}
	return write(w, event{"message": "stop signal sent"})
}

// mcpStatus says what works of the MCP servers of a thread.
func (s *Server) mcpStatus(w http.ResponseWriter, r *http.Request, agent string) error {
	session, _, err := s.found(w, r, agent)
	if err != nil {
		return err
	}
	got, err := s.servers.GetMcpStatus(r.Context(), &sessionv1.GetMcpStatusRequest{Name: session.GetName() + "/mcp"})
	if err != nil {
		return err
	}
	return writeMessage(w, got.GetStatus())
}

// model chooses the model of a thread's next runs.
func (s *Server) model(w http.ResponseWriter, r *http.Request, agent string) error {
	session, in, err := s.found(w, r, agent)
	if err != nil {
		return err
	}
	if in.Model == "" {
		return bad("model", "is missing: name a model that the agent allows")
	}
	options := &sessionv1.TurnOptions{}
	if session.GetTurnOptions() != nil {
		options = session.GetTurnOptions()
	}
	before := options.GetModel()
	options.Model = in.Model
	if _, err := s.wire.Sessions.UpdateSession(r.Context(), &sessionv1.UpdateSessionRequest{Name: session.GetName(), TurnOptions: options}); err != nil {
		return err
	}
	return write(w, event{"message": "Model switched", "model": in.Model, "previousModel": before})
}

// clone makes a thread that goes on from where this one stands. Its id is that of the answer.
func (s *Server) clone(w http.ResponseWriter, r *http.Request, agent string) error {
	session, in, err := s.found(w, r, agent)
	if err != nil {
		return err
	}
	made, err := s.wire.Sessions.ForkSession(r.Context(), &sessionv1.ForkSessionRequest{Name: session.GetName(), Title: in.Title, RequestId: r.Header.Get("Idempotency-Key")})
	if err != nil {
		return err
	}
	return write(w, event{"threadId": made.GetSession().GetName()})
}

// export answers with the transcript of a thread.
func (s *Server) export(w http.ResponseWriter, r *http.Request, agent string) error {
	session, _, err := s.found(w, r, agent)
	if err != nil {
		return err
	}
	pieces, err := s.wire.Sessions.ExportSession(r.Context(), &sessionv1.ExportSessionRequest{Name: session.GetName(), Format: sessionv1.ExportFormat_EXPORT_FORMAT_JSONL})
	if err != nil {
		return err
	}
	first, err := pieces.Recv()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", codec.NDJSON)
	w.Header().Set("Cache-Control", "no-store")
	for piece := first; ; {
		if _, err := w.Write(piece.GetData()); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		if piece, err = pieces.Recv(); err != nil {
			return cutOff(err)
		}
	}
}

// cutOff ends an answer that has begun: one that cannot be completed must not look complete.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	panic(http.ErrAbortHandler)
}
