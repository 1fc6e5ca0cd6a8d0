// Package aisdk speaks the UI message stream of the AI SDK with a running server: by hand, and with the official clients.
package aisdk

import (
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

// server is all services.
type server struct{ *wiretest.Server }

// configuration is the configuration of the session service.
func configuration() map[string]any {
	return map[string]any{
		"model": "scripted:chat", "default-agent": "helper",
		"agents": map[string]any{
			"helper": map[string]any{"prompt": "Help.", "profile": "full", "tools": []string{"Bash", "AskUserQuestion"}},
			"asker":  map[string]any{"prompt": "Ask.", "profile": "ask-writes", "tools": []string{"Read", "Write"}},
			"short":  map[string]any{"prompt": "Be short.", "profile": "full", "tools": []string{"Bash"}, "max-steps": 1},
		},
	}
}

// people are the users of a server with users.
var people = map[string]commonv1.Role{
	"ann": commonv1.Role_ROLE_USER, "bob": commonv1.Role_ROLE_USER, "operator": commonv1.Role_ROLE_OPERATOR, "viewer": commonv1.Role_ROLE_VIEWER,
}

// serve runs a server that everyone may use.
func serve(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Serve(t, configuration(), nil)}
}

// serveUsers runs a server with users.
func serveUsers(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Serve(t, configuration(), people)}
}

// spawn runs a server that a test may kill.
func spawn(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Spawn(t, configuration())}
}
