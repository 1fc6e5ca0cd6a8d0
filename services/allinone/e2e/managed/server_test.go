// Package managed speaks the wire of Claude Managed Agents with a running server: by hand, and with the official clients.
package managed

import (
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

// server is all services.
type server struct{ *wiretest.Server }

func configuration() map[string]any { return map[string]any{"model": "scripted:agents"} }

// serve runs a server that everyone may use.
func serve(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Serve(t, configuration(), nil)}
}

// serveUsers runs a server with two users.
func serveUsers(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Serve(t, configuration(), map[string]commonv1.Role{"ann": commonv1.Role_ROLE_OPERATOR, "bob": commonv1.Role_ROLE_OPERATOR})}
}

// spawn runs a server that a test may kill.
func spawn(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Spawn(t, configuration())}
}
