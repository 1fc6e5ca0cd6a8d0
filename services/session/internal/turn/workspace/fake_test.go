package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
)

// fakeSandbox records its requests, as `method call`, and fails those of errs once.
type fakeSandbox struct {
	Sandbox
	mu        sync.Mutex
	requests  []string
	errs      map[string][]error // by method
	snapshots []string           // the newest first
	ensured   *sandboxv1.EnsureWorkspaceRequest
}

func (f *fakeSandbox) request(method string, call *commonv1.CallRef) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, method+" "+call.GetCallId())
	if errs := f.errs[method]; len(errs) > 0 {
		f.errs[method] = errs[1:]
		return remote.Error(errs[0])
	}
	return nil
}

// methods returns the names of the requests so far.
func (f *fakeSandbox) methods() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, r := range f.requests {
		var method string
		_, _ = fmt.Sscan(r, &method)
		all = append(all, method)
	}
	return all
}

// ListFiles answers as a node that is away: without a list there is no event of artifacts.
func (*fakeSandbox) ListFiles(context.Context, remote.Place, *sandboxv1.ListFilesRequest) (*sandboxv1.ListFilesResponse, error) {
	return nil, errors.New("away")
}

func (f *fakeSandbox) EnsureWorkspace(_ context.Context, r *sandboxv1.EnsureWorkspaceRequest) (*sandboxv1.EnsureWorkspaceResponse, error) {
	f.ensured = r
	return &sandboxv1.EnsureWorkspaceResponse{}, f.request("ensure", r.Call)
}

func (f *fakeSandbox) FenceWorkspace(_ context.Context, call *commonv1.CallRef) error {
	return f.request("fence", call)
}

func (f *fakeSandbox) SealWorkspace(_ context.Context, call *commonv1.CallRef) error {
	return f.request("seal", call)
}

func (f *fakeSandbox) UnsealWorkspace(_ context.Context, call *commonv1.CallRef) error {
	return f.request("unseal", call)
}

func (f *fakeSandbox) CreateSnapshot(_ context.Context, call *commonv1.CallRef, _ string) (string, error) {
	if err := f.request("snapshot", call); err != nil {
		return "", err
	}
	id := fmt.Sprintf("snap-%d", len(f.snapshots)+1)
	f.snapshots = slices.Insert(f.snapshots, 0, id)
	return id, nil
}

func (f *fakeSandbox) ListSnapshots(context.Context, remote.Place) (all []*sandboxv1.Snapshot, err error) {
	for _, id := range f.snapshots {
		all = append(all, &sandboxv1.Snapshot{Id: id})
	}
	return all, nil
}

func (f *fakeSandbox) DeleteSnapshots(_ context.Context, call *commonv1.CallRef, ids ...string) error {
	f.snapshots = slices.DeleteFunc(f.snapshots, func(id string) bool { return slices.Contains(ids, id) })
	return f.request("delete", call)
}

func (f *fakeSandbox) RestoreSnapshot(_ context.Context, call *commonv1.CallRef, id string) error {
	return f.request("restore-"+id, call)
}

func (f *fakeSandbox) ExportSnapshots(_ context.Context, call *commonv1.CallRef) error {
	return f.request("export", call)
}

func (f *fakeSandbox) ImportSnapshots(_ context.Context, call *commonv1.CallRef, id string) (*sandboxv1.Snapshot, error) {
	if err := f.request("import", call); err != nil {
		return nil, err
	}
	return &sandboxv1.Snapshot{Id: id}, nil
}

func (f *fakeSandbox) CloneRepository(_ context.Context, r *sandboxv1.CloneRepositoryRequest) (*sandboxv1.CloneRepositoryResponse, error) {
	return nil, f.request("clone", r.Call)
}

func (f *fakeSandbox) CreateBranch(_ context.Context, call *commonv1.CallRef, _, _ string) error {
	return f.request("branch", call)
}

func (f *fakeSandbox) ListRepositories(context.Context, remote.Place) ([]*sandboxv1.Repository, error) {
	return nil, nil
}

// fixture is a session with a workspace on a fake sandbox.
type fixture struct {
	*turntest.Fixture
	sandbox *fakeSandbox
	*Workspace
}

var spec = agent.Spec{Tools: []string{"Bash", "Read"}, Checkpoints: []string{"Bash"}}

func start(t *testing.T, s agent.Spec, c Config) *fixture {
	t.Helper()
	f := &fixture{Fixture: turntest.New(t, s), sandbox: &fakeSandbox{errs: map[string][]error{}}}
	tools := toolset.New(turntest.Lists(&toolsv1.Tool{Name: "tools/Read", ReadOnly: true}, &toolsv1.Tool{Name: "tools/Bash"}))
	if _, err := tools.List(f.Scope); err != nil {
		t.Fatal(err)
	}
	c.Sandbox = f.sandbox
	if c.Checkpoints.Keep == 0 {
		c.Checkpoints.Keep = 100
	}
	f.Workspace = New(c, tools, func(sc state.Scope, write *store.Write, notMade func(*sessionv1.ToolUse) *sessionv1.ToolResult) error {
		return nil
	})
	return f
}
