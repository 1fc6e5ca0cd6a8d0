package integration

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// fleet stands in for two nodes of the sandbox with one object store. Of workspaces they
// know only whether they have them.
type fleet struct {
	sessionv1.NodeServiceClient
	store store.Store // the service's own

	mu      sync.Mutex
	nodes   []*machine
	objects map[string][]string // snapshots in the object store, by session
}

// machine is one of the nodes. The fleet's mu guards it.
type machine struct {
	sandboxv1.UnimplementedWorkspaceServiceServer
	sandboxv1.UnimplementedSnapshotServiceServer
	healthpb.UnimplementedHealthServer
	remote

	*fleet
	name      string
	down      bool
	refusing  bool             // it cannot read the object store
	dies      bool             // when it is to copy a workspace for a move
	storeAway bool             // the object store does not answer it
	forgets   bool             // workspaces, when it is to make sure of one that is to leave
	made      func()           // is told that it has made a workspace
	has       map[string]files // by session
	sealing                    // how it takes seals
	wanted    []*sandboxv1.EnsureWorkspaceRequest
	imports   []*sandboxv1.ImportSnapshotsRequest
}

// files is the workspace of a place.
type files struct {
	generation int64
	snapshots  []string
	sealed     int64 // the epoch of who did it
}

// startFleet runs a service with two nodes.
func startFleet(t *testing.T, scenario string, change ...func(*session.Config)) *fixture {
	t.Helper()
	l := &fleet{objects: map[string][]string{}}
	for _, name := range []string{"a", "b"} {
		l.nodes = append(l.nodes, &machine{fleet: l, name: name, has: map[string]files{}})
	}
	f := prepare(t, scenario, append(change, func(c *session.Config) { c.SandboxLostAfter = time.Second })...)
	f.fleet = l
	f.wrap(t, func(s store.Store) store.Store {
		l.store = s
		return s
	})
	f.run(t)
	t.Cleanup(func() { f.stop() })
	return f
}

func withoutExports(c *session.Config) { c.WorkspaceExport = session.ExportOff }

func (l *fleet) dial(t *testing.T) (*node.Set, []string) {
	t.Helper()
	set, err := node.Dial([]string{"a=0", "b=1"}, func(at string) (*grpc.ClientConn, error) {
		return rpctest.Dial(t, l.nodes[int(at[0]-'0')].register), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, set.Names()
}

// home is the node that has a session's workspace, and the other one.
func (l *fleet) home(t *testing.T, s string) (has, other *machine) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, m := range l.nodes {
		if _, there := m.has[s]; there {
			return m, l.nodes[1-i]
		}
	}
	t.Fatal("no node has the workspace")
	return nil, nil
}

// set changes the nodes.
func (l *fleet) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// place is where the database says that a workspace is.
func (l *fleet) place(ctx context.Context, t *testing.T, s string) store.Place {
	t.Helper()
	p, _, err := l.store.PlaceOf(ctx, store.Key{Tenant: principal.Default().Tenant, Session: strings.TrimPrefix(s, "sessions/")})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return p
}

// untilPlace waits until a place is as wanted.
func (l *fleet) untilPlace(ctx context.Context, t *testing.T, s string, ok func(store.Place) bool) store.Place {
	t.Helper()
	return until(ctx, t, func() (store.Place, error) { return l.place(ctx, t, s), nil }, ok)
}

// drained has a node drained, and waits until the service knows.
func (l *fleet) drained(ctx context.Context, t *testing.T, m *machine) {
	t.Helper()
	if _, err := l.DrainNode(ctx, &sessionv1.DrainNodeRequest{Node: m.name, Draining: true}); err != nil {
		t.Fatal(err)
	}
	l.untilNode(ctx, t, m, func(n *sessionv1.Node) bool { return n.Draining })
}

// untilNode waits until the service takes a node for what is wanted.
func (l *fleet) untilNode(ctx context.Context, t *testing.T, m *machine, ok func(*sessionv1.Node) bool) {
	t.Helper()
	until(ctx, t, func() (*sessionv1.ListNodesResponse, error) { return l.ListNodes(ctx, &sessionv1.ListNodesRequest{}) },
		func(r *sessionv1.ListNodesResponse) bool {
			return slices.ContainsFunc(r.Nodes, func(n *sessionv1.Node) bool { return n.Name == m.name && ok(n) })
		})
}

func (m *machine) register(r grpc.ServiceRegistrar) {
	sandboxv1.RegisterWorkspaceServiceServer(r, m)
	sandboxv1.RegisterSnapshotServiceServer(r, m)
	sandboxv1.RegisterRepositoryServiceServer(r, &m.remote)
	healthpb.RegisterHealthServer(r, m)
}

func refused(code codes.Code, reason string) error {
	return apierr.New(code, "sandbox.fairlead.dev", reason, reason)
}

// enter begins a request; leave must be called.
func (m *machine) enter() (leave func(), err error) {
	m.mu.Lock()
	if m.down {
		err = refused(codes.Unavailable, "DOWN")
	}
	return m.mu.Unlock, err
}

// within begins a request that is about a workspace that there must be.
func (m *machine) within(s string) (leave func(), err error) {
	leave, err = m.enter()
	if _, there := m.has[s]; err == nil && !there {
		err = refused(codes.NotFound, "WORKSPACE_NOT_FOUND")
	}
	return leave, err
}

func (m *machine) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	leave, err := m.enter()
	defer leave()
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, err
}

func (m *machine) GetCapabilities(context.Context, *sandboxv1.GetCapabilitiesRequest) (*sandboxv1.GetCapabilitiesResponse, error) {
	leave, err := m.enter()
	defer leave()
	return &sandboxv1.GetCapabilitiesResponse{Node: m.name}, err
}

func (m *machine) EnsureWorkspace(_ context.Context, r *sandboxv1.EnsureWorkspaceRequest) (*sandboxv1.EnsureWorkspaceResponse, error) {
	leave, err := m.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	m.wanted = append(m.wanted, r)
	s := r.GetCall().GetSession()
	if m.forgets && strings.Contains(r.GetCall().GetCallId(), ".leave.") {
		delete(m.has, s)
	}
	_, there := m.has[s]
	switch {
	case r.MustExist && !there:
		return nil, refused(codes.NotFound, "WORKSPACE_NOT_FOUND")
	case !there:
		m.has[s] = files{generation: r.GetCall().GetWorkspaceGeneration()}
		if m.made != nil {
			m.made()
		}
	default:
		err = m.changing(r.GetCall())
	}
	if err != nil {
		return nil, err
	}
	return &sandboxv1.EnsureWorkspaceResponse{Created: !there}, nil
}

func (m *machine) FenceWorkspace(context.Context, *sandboxv1.FenceWorkspaceRequest) (*sandboxv1.FenceWorkspaceResponse, error) {
	return &sandboxv1.FenceWorkspaceResponse{}, nil
}

func (m *machine) DeleteWorkspace(_ context.Context, r *sandboxv1.DeleteWorkspaceRequest) (*sandboxv1.DeleteWorkspaceResponse, error) {
	leave, err := m.enter()
	defer leave()
	if err == nil && (r.WorkspaceGeneration == 0 || m.has[r.Session].generation <= r.WorkspaceGeneration) {
		delete(m.has, r.Session)
	}
	return &sandboxv1.DeleteWorkspaceResponse{}, err
}

func (m *machine) ExportWorkspace(r *sandboxv1.ExportWorkspaceRequest, stream grpc.ServerStreamingServer[sandboxv1.ExportWorkspaceResponse]) error {
	leave, err := m.within(r.Session)
	defer leave()
	if err != nil {
		return err
	}
	return stream.Send(&sandboxv1.ExportWorkspaceResponse{Data: []byte("files")})
}

func (m *machine) ImportWorkspace(stream grpc.ClientStreamingServer[sandboxv1.ImportWorkspaceRequest, sandboxv1.ImportWorkspaceResponse]) error {
	first, err := stream.Recv()
	for next := err; !errors.Is(next, io.EOF); _, next = stream.Recv() {
		if next != nil {
			return next
		}
	}
	leave, err := m.enter()
	defer leave()
	if err != nil {
		return err
	}
	call := first.GetOpen().GetCall()
	m.has[call.GetSession()] = files{generation: call.GetWorkspaceGeneration()}
	return stream.SendAndClose(&sandboxv1.ImportWorkspaceResponse{Created: true})
}

func (m *machine) CreateSnapshot(_ context.Context, r *sandboxv1.CreateSnapshotRequest) (*sandboxv1.CreateSnapshotResponse, error) {
	s := r.GetCall().GetSession()
	leave, err := m.within(s)
	defer leave()
	if err != nil {
		return nil, err
	}
	if m.dies && strings.HasPrefix(r.Description, "before the workspace leaves") {
		m.down = true
		return nil, refused(codes.Unavailable, "DOWN")
	}
	id, w := r.GetCall().GetCallId(), m.has[s]
	if w.sealed > 0 && strings.HasPrefix(r.Description, "before step") {
		m.sealedSteps++
	}
	if !slices.Contains(w.snapshots, id) {
		w.snapshots = append(w.snapshots, id)
		m.has[s] = w
	}
	return &sandboxv1.CreateSnapshotResponse{Snapshot: &sandboxv1.Snapshot{Id: id, CreateTime: timestamppb.Now()}}, nil
}

func (m *machine) DeleteSnapshots(_ context.Context, r *sandboxv1.DeleteSnapshotsRequest) (*sandboxv1.DeleteSnapshotsResponse, error) {
	s := r.GetCall().GetSession()
	leave, err := m.within(s)
	defer leave()
	if err != nil {
		return nil, err
	}
	w := m.has[s]
	w.snapshots = slices.DeleteFunc(slices.Clone(w.snapshots), func(id string) bool { return slices.Contains(r.GetSnapshots(), id) })
	m.has[s] = w
	return &sandboxv1.DeleteSnapshotsResponse{}, nil
}

func (m *machine) ExportSnapshots(_ context.Context, r *sandboxv1.ExportSnapshotsRequest) (*sandboxv1.ExportSnapshotsResponse, error) {
	s := r.GetCall().GetSession()
	leave, err := m.within(s)
	defer leave()
	if err != nil {
		return nil, err
	}
	if m.storeAway {
		return nil, refused(codes.Unavailable, "OBJECT_STORE_FAILED")
	}
	if m.has[s].sealed > 0 && m.leaveSealed {
		return nil, refused(codes.FailedPrecondition, "OBJECT_STORE_REFUSES")
	}
	m.objects[s] = slices.Clone(m.has[s].snapshots)
	return &sandboxv1.ExportSnapshotsResponse{}, nil
}

func (m *machine) ImportSnapshots(_ context.Context, r *sandboxv1.ImportSnapshotsRequest) (*sandboxv1.ImportSnapshotsResponse, error) {
	leave, err := m.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	m.imports = append(m.imports, r)
	s := r.GetCall().GetSession()
	kept := m.objects[s]
	switch {
	case m.refusing:
		return nil, refused(codes.FailedPrecondition, "OBJECT_STORE_REFUSES")
	case len(kept) == 0:
		return nil, refused(codes.NotFound, "SNAPSHOT_NOT_FOUND")
	}
	id := kept[len(kept)-1]
	if slices.Contains(kept, r.Snapshot) {
		id = r.Snapshot
	}
	m.has[s] = files{generation: r.GetCall().GetWorkspaceGeneration(), snapshots: slices.Clone(kept)}
	return &sandboxv1.ImportSnapshotsResponse{Created: true, Snapshot: &sandboxv1.Snapshot{Id: id, CreateTime: timestamppb.Now()}}, nil
}
