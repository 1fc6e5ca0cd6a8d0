package doors

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// enter makes the same calls with the right credentials: they show that the attacks were refused for who made them, and
// not for what they said.
func (w *world) enter(t *testing.T, all []door, paths []route) {
	t.Helper()
	for _, r := range paths {
		if !r.reads() || r.rule.Open {
			continue
		}
		if got := w.overREST(t, r.request(w.writer(t, r.door)), w.of(owner(r.door))); got.status/100 != 2 && !excused(r.door, got) {
			t.Errorf("%s of its owner: %s", r.name(), got)
		}
	}
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b door) int { return a.harm() - b.harm() })
	for _, d := range order {
		if d.internal() || d.rule.Open {
			continue
		}
		got := w.overGRPC(t, d, w.writer(t, d).request(), w.of(owner(d)))
		switch {
		case got.code == codes.OK, excused(d, got):
		case d.reads() || wrongForOwners[got.code]:
			t.Errorf("%s of its owner: %s", d.short(), got)
		}
	}
}

// wrongForOwners are codes that mean that a request did not reach what it is about.
var wrongForOwners = map[codes.Code]bool{
	codes.Unauthenticated: true, codes.PermissionDenied: true, codes.NotFound: true, codes.InvalidArgument: true,
	codes.Unimplemented: true, codes.Internal: true, codes.Unknown: true, codes.DeadlineExceeded: true,
}

// excuses are reasons for which an owner's call fails here, after it has found what it is about.
var excuses = map[string]string{
	"SessionService.ExportSession":          "SESSION_ACTIVE",     // a turn waits for an approval; export has a look before
	"SessionService.ImportSession":          "BAD_IMPORT",         // the request has no transcript
	"RepositoryService.PushRepository":      "REMOTE_NOT_ALLOWED", // there is no Git server
	"SessionFileService.ImportSessionFiles": "BAD_ARCHIVE",        // the request has no archive
	"McpService.CompleteMcpArgument":        "MCP_DENIED",         // the session's agent does not have the tool that reads
	"McpService.WatchMcpResource":           "MCP_DENIED",         // as above
	"SkillService.CreateSkill":              "INVALID_SKILL",      // the file is no archive
	"SkillService.UpdateSkill":              "INVALID_SKILL",      // the file is no archive
}

func excused(d door, a answer) bool {
	return excuses[d.short()] != "" && excuses[d.short()] == a.reason
}

// owner returns the caller who may call an RPC.
func owner(d door) string {
	switch {
	case strings.Contains(d.name, "Tenant"):
		return "root"
	case d.rule.Role > principal.RoleUser:
		return "acme"
	}
	return "ann"
}

// harm orders the calls: what ends a resource comes last, and the session after all that is in it.
func (d door) harm() int {
	name := string(d.rpc.Name())
	switch {
	case d.reads():
		return 0
	case name == "DeleteSession":
		return 3
	case name == "RevokeKey":
		return 4
	case name == "DeleteUser":
		return 5
	case strings.HasPrefix(name, "Delete"), strings.HasPrefix(name, "Remove"), strings.HasPrefix(name, "Archive"):
		return 2
	}
	return 1
}
