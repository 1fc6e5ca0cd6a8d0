package agui

import (
	"encoding/json"
	"net/http"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
)

// side is a route besides runs.
type side struct {
	method string
	serve  func(s *Server, w http.ResponseWriter, r *http.Request, agent string) error
}

// sides are the routes behind that of an agent.
var sides = map[string]side{
	"events": {http.MethodGet, (*Server).events},
	"health": {http.MethodGet, (*Server).health},
}

// write answers with JSON.
func write(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", codec.ContentType)
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(v)
}

// health says that the agent can be talked to.
func (s *Server) health(w http.ResponseWriter, r *http.Request, agent string) error {
	if _, err := s.agents.GetAgent(r.Context(), &sessionv1.GetAgentRequest{Name: "agents/" + agent}); err != nil {
		return err
	}
	return write(w, event{"status": "healthy", "agent": agent})
}
