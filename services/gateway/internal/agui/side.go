package agui

import (
	"net/http"
)

// side is a route besides runs.
type side struct {
	method string
	serve  func(s *Server, w http.ResponseWriter, r *http.Request, agent string) error
}

// sides are the routes behind that of an agent.
var sides = map[string]side{
	"events": {http.MethodGet, (*Server).events},
}
