package main

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

func TestPathsNameTheirVariables(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/sessions":                          "/v1/sessions",
		"/v1/{name=sessions/*}:fork":            "/v1/sessions/{session}:fork",
		"/v1/{name=sessions/*/repositories/*}":  "/v1/sessions/{session}/repositories/{repository}",
		"/v1/{file.name=sessions/*/files/**}":   "/v1/sessions/{session}/files/{path}",
		"/v1/{parent=sessions/*}/approvals:all": "/v1/sessions/{session}/approvals:all",
	} {
		if got := readable(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestThePageHasWhatClientsMayCall(t *testing.T) {
	page, err := render(services())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| `SessionService.DeleteSession` | `DELETE /v1/sessions/{session}` | user | `sessions.write` | session |",
		"| `AuditService.ListAuditEntries` | `GET /v1/audit` | admin | `audit.read` |  |",
	} {
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("no row %s", row)
		}
	}
	internal := sandboxv1.File_fairlead_sandbox_v1_exec_proto.Services().Get(0)
	if page, err := render([]protoreflect.ServiceDescriptor{internal}); err != nil || string(page) != header {
		t.Errorf("internal RPCs: %v %s", err, page)
	}
}
