package integration

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// peers stand in for tools and sandbox. They keep the contract of a journal: a
// call id is executed once, and asking again brings its result.
type peers struct {
	toolsv1.UnimplementedToolServiceServer
	toolsv1.UnimplementedCallServiceServer
	toolsv1.UnimplementedOperationServiceServer
	toolsv1.UnimplementedLoginServiceServer
	sandboxv1.UnimplementedWorkspaceServiceServer
	sandboxv1.UnimplementedSnapshotServiceServer
	sandboxv1.UnimplementedFileServiceServer
	remote // of repositories

	mu              sync.Mutex
	results         map[string]*toolsv1.CallResult
	cancelled       map[string]bool
	executed        map[string]int // by call id
	cancels         map[string]context.CancelFunc
	broken          map[string]int // tool or method: RPCs that fail before anything is done
	epochs          []int64
	highest         map[string]int64  // epoch by session
	users           map[string]string // by call id
	holders         map[string]string // who made a call in which workspace, by call id
	blocked         chan string       // ids of Block calls that run
	telling         bool              // Tell has begun
	deleted         []string
	news            int                                 // calls that were the first to bring a higher epoch
	fences          []string                            // who was told of a takeover, of which session
	keeping         bool                                // tools and sandbox cannot be told to delete
	asked           int                                 // answers that were ASK
	archives        map[string][]byte                   // the files, by session
	snapshots       map[string]int                      // how often each was asked for, by call id
	restored        []string                            // snapshots, by the call id that made them
	full            bool                                // there is no room for another snapshot
	refuseSnapshots bool                                // for another reason
	changes         []string                            // what was done to them: the ids of the calls that changed something
	states          map[string]string                   // what the files were, by snapshot
	answered        map[string]bool                     // restores that were done, by call id
	cleared         []string                            // snapshots that were deleted
	ensuring        func(context.Context) (made func()) // is called when a workspace is to be made
	wanted          []*sandboxv1.EnsureWorkspaceRequest
	lacks           string                       // a tool that does not exist
	unknown         string                       // a mount that sandbox does not know
	looks           map[string]int               // how often an operation was looked at; it runs at the first look
	emptied         []string                     // whose storage was deleted, as tenant/user
	environment     map[string]string            // that commands have: who sets none leaves it
	given           map[string]map[string]string // the environment of each call, by its id
	paths           map[string]bool              // of files in workspaces, as session/path
	fileCalls       map[string]string            // what changed files, by call id
	approvals       map[string]*toolsv1.Approval // the last one of each call, by its id
	mcp             mcpPeer
	answers         map[string][]*commonv1.QuestionAnswer
}

func newPeers() *peers {
	return &peers{
		results: map[string]*toolsv1.CallResult{}, cancelled: map[string]bool{}, executed: map[string]int{}, cancels: map[string]context.CancelFunc{},
		highest: map[string]int64{}, broken: map[string]int{}, users: map[string]string{}, holders: map[string]string{}, looks: map[string]int{}, archives: map[string][]byte{}, snapshots: map[string]int{}, states: map[string]string{}, answered: map[string]bool{}, blocked: make(chan string, 100),
		given: map[string]map[string]string{}, paths: map[string]bool{}, fileCalls: map[string]string{},
		approvals: map[string]*toolsv1.Approval{}, answers: map[string][]*commonv1.QuestionAnswer{},
	}
}

func (p *peers) register(r grpc.ServiceRegistrar) {
	toolsv1.RegisterToolServiceServer(r, p)
	toolsv1.RegisterCallServiceServer(r, p)
	toolsv1.RegisterOperationServiceServer(r, p)
	toolsv1.RegisterLoginServiceServer(r, p)
	sandboxv1.RegisterWorkspaceServiceServer(r, p)
	sandboxv1.RegisterSnapshotServiceServer(r, p)
	sandboxv1.RegisterFileServiceServer(r, p)
	sandboxv1.RegisterRepositoryServiceServer(r, &p.remote)
}

// The id of a snapshot is that of the call that made it.
func (p *peers) CreateSnapshot(_ context.Context, r *sandboxv1.CreateSnapshotRequest) (*sandboxv1.CreateSnapshotResponse, error) {
	if err := p.away("CreateSnapshot"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fence(r.GetCall()); err != nil {
		return nil, err
	}
	call := r.GetCall().GetCallId()
	p.snapshots[call]++
	if p.full {
		return nil, apierr.Of(codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_SNAPSHOTS, "full")
	}
	if p.refuseSnapshots {
		return nil, apierr.Of(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE, "a file was closed meanwhile")
	}
	if _, made := p.states[call]; !made {
		p.states[call] = strings.Join(p.changes, " ")
	}
	return &sandboxv1.CreateSnapshotResponse{Snapshot: &sandboxv1.Snapshot{Id: call}}, nil
}

// fence refuses a holder who has lost the session.
func (p *peers) fence(c *commonv1.CallRef) error {
	if c.GetEpoch() < p.highest[fencedBy(c)] {
		return apierr.Of(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH, "another holds the session")
	}
	p.highest[fencedBy(c)] = c.GetEpoch()
	return nil
}

// fencedBy returns the session whose epochs fence a call.
func fencedBy(c *commonv1.CallRef) string { return cmp.Or(c.GetHolder(), c.GetSession()) }

func (p *peers) ListSnapshots(context.Context, *sandboxv1.ListSnapshotsRequest) (*sandboxv1.ListSnapshotsResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	resp := &sandboxv1.ListSnapshotsResponse{}
	for id := range p.states {
		resp.Snapshots = append(resp.Snapshots, &sandboxv1.Snapshot{Id: id})
	}
	return resp, nil
}

func (p *peers) DeleteSnapshots(_ context.Context, r *sandboxv1.DeleteSnapshotsRequest) (*sandboxv1.DeleteSnapshotsResponse, error) {
	if err := p.away("DeleteSnapshots"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fence(r.GetCall()); err != nil {
		return nil, err
	}
	p.full = false
	for _, id := range r.GetSnapshots() {
		delete(p.states, id)
		p.cleared = append(p.cleared, id)
	}
	return &sandboxv1.DeleteSnapshotsResponse{}, nil
}

func (p *peers) RestoreSnapshot(_ context.Context, r *sandboxv1.RestoreSnapshotRequest) (*sandboxv1.RestoreSnapshotResponse, error) {
	if err := p.away("RestoreSnapshot"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fence(r.GetCall()); err != nil {
		return nil, err
	}
	state, kept := p.states[r.GetSnapshot()]
	if p.broken["lost snapshot"] > 0 || !kept {
		return nil, apierr.Of(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND, "lost")
	}
	if call := r.GetCall().GetCallId(); !p.answered[call] { // once a call
		p.answered[call] = true
		p.changes = strings.Fields(state)
	}
	p.restored = append(p.restored, r.GetSnapshot())
	return &sandboxv1.RestoreSnapshotResponse{}, nil
}

// away is the error of an RPC to a service that is not there.
func (p *peers) away(what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken[what] == 0 {
		return nil
	}
	p.broken[what]--
	return apierr.New(codes.Unavailable, "tools.fairlead.dev", "AWAY", "away")
}

func (p *peers) ListTools(context.Context, *toolsv1.ListToolsRequest) (*toolsv1.ListToolsResponse, error) {
	if err := p.away("ListTools"); err != nil {
		return nil, err
	}
	resp := &toolsv1.ListToolsResponse{Tools: []*toolsv1.Tool{{Name: "tools/Huge", Description: strings.Repeat("word ", 800)}}}
	for _, name := range []string{"Background", "Bash", "Block", "Broken", "Fail", "Long", "Picture", "Read", "Task", "TodoWrite", "Write", "create_agent", "edit_agent", "AskUserQuestion", "Elicit"} {
		resp.Tools = append(resp.Tools, &toolsv1.Tool{Name: "tools/" + name, Description: name, Parallel: name == "Read" || name == "Block" || name == "Task", ReadOnly: name == "Read"})
	}
	return resp, nil
}

// ListSessionTools lists the allowed tools, and those of the servers of the request.
func (p *peers) ListSessionTools(ctx context.Context, r *toolsv1.ListSessionToolsRequest) (*toolsv1.ListSessionToolsResponse, error) {
	all, err := p.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	resp := &toolsv1.ListSessionToolsResponse{}
	for _, t := range all.Tools {
		if slices.Contains(r.AllowedTools, strings.TrimPrefix(t.Name, "tools/")) {
			resp.Tools = append(resp.Tools, t)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mcp.list(r.Servers, resp)
	return resp, nil
}

func (p *peers) EnsureWorkspace(ctx context.Context, r *sandboxv1.EnsureWorkspaceRequest) (*sandboxv1.EnsureWorkspaceResponse, error) {
	if err := p.away("EnsureWorkspace"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	ensuring := p.ensuring
	p.mu.Unlock()
	if ensuring != nil {
		defer ensuring(ctx)()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = append(p.wanted, r)
	i := slices.IndexFunc(r.GetMounts().GetMounts(), func(m *commonv1.Mount) bool { return m.GetName() == p.unknown })
	if i >= 0 && r.GetMounts().GetMounts()[i].GetOptional() {
		return &sandboxv1.EnsureWorkspaceResponse{Created: true, MissingMounts: []string{p.unknown}}, nil
	}
	if i >= 0 {
		return nil, apierr.Of(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_MOUNT_NOT_FOUND, "there is no such mount: "+p.unknown)
	}
	if e := r.GetEnvironment(); e != nil {
		p.environment = e.GetVariables()
	}
	return &sandboxv1.EnsureWorkspaceResponse{Created: true}, nil
}

func (p *peers) DeleteUserStorage(ctx context.Context, _ *sandboxv1.DeleteUserStorageRequest) (*sandboxv1.DeleteUserStorageResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeping {
		return nil, apierr.New(codes.Unavailable, "sandbox.fairlead.dev", "AWAY", "away")
	}
	who, _ := principal.From(ctx)
	p.emptied = append(p.emptied, who.Tenant+"/"+who.User)
	return &sandboxv1.DeleteUserStorageResponse{}, nil
}

func (p *peers) GetCapabilities(context.Context, *sandboxv1.GetCapabilitiesRequest) (*sandboxv1.GetCapabilitiesResponse, error) {
	return &sandboxv1.GetCapabilitiesResponse{Level: "basic", Driver: "fake"}, nil
}

func (p *peers) DeleteWorkspace(_ context.Context, r *sandboxv1.DeleteWorkspaceRequest) (*sandboxv1.DeleteWorkspaceResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeping {
		return nil, apierr.New(codes.Unavailable, "tools.fairlead.dev", "AWAY", "away")
	}
	p.deleted = append(p.deleted, "sandbox "+r.Session)
	return &sandboxv1.DeleteWorkspaceResponse{}, nil
}

func (p *peers) FenceSession(_ context.Context, r *toolsv1.FenceSessionRequest) (*toolsv1.FenceSessionResponse, error) {
	if err := p.away("FenceSession"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fences = append(p.fences, "tools "+r.GetCall().GetSession())
	return &toolsv1.FenceSessionResponse{}, p.fence(r.GetCall())
}

func (p *peers) FenceWorkspace(_ context.Context, r *sandboxv1.FenceWorkspaceRequest) (*sandboxv1.FenceWorkspaceResponse, error) {
	if err := p.away("FenceWorkspace"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fences = append(p.fences, "sandbox "+r.GetCall().GetSession())
	return &sandboxv1.FenceWorkspaceResponse{}, p.fence(r.GetCall())
}

func (p *peers) DeleteSessionCalls(_ context.Context, r *toolsv1.DeleteSessionCallsRequest) (*toolsv1.DeleteSessionCallsResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeping {
		return nil, apierr.New(codes.Unavailable, "tools.fairlead.dev", "AWAY", "away")
	}
	p.deleted = append(p.deleted, "tools "+r.Session)
	return &toolsv1.DeleteSessionCallsResponse{}, nil
}

func digest(r *toolsv1.CallToolRequest) string {
	sum := sha256.Sum256([]byte(r.Tool + r.ArgumentsJson))
	return hex.EncodeToString(sum[:])
}

// longResult is what the tool Long brings.
var longResult = "begin " + strings.Repeat("line of output ", 3200) + "end"

// delegated are the tools of the session itself.
var delegated = []string{"Task", "TodoWrite", "create_agent", "edit_agent", "AskUserQuestion"}

// elicits returns the question of Elicit after an answer.
func elicits(a *commonv1.QuestionAnswer) *commonv1.Question {
	if a == nil {
		return &commonv1.Question{Id: "1", Message: "Which port?", Server: "wiki", SchemaJson: `{"type":"object","properties":{"port":{"type":"integer"}},"required":["port"]}`}
	}
	return &commonv1.Question{Id: "2", Message: "Log in first.", Server: "wiki", Url: "https://example.org/login"}
}

// CallTool: Elicit asks the user twice, Write asks, Block runs until it is cancelled, Broken fails as
// often as `broken` says, Fail fails, TodoWrite is delegated, Tell is call_output_test's,
// all others answer at once.
func (p *peers) CallTool(r *toolsv1.CallToolRequest, stream grpc.ServerStreamingServer[toolsv1.CallToolResponse]) error {
	id := r.Call.CallId
	acting, _ := principal.From(stream.Context())
	p.mu.Lock()
	p.epochs = append(p.epochs, r.Call.Epoch)
	if r.Call.Epoch < p.highest[fencedBy(r.Call)] {
		p.mu.Unlock()
		return apierr.Of(codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH, "another holds the session")
	}
	if r.Call.Epoch > p.highest[fencedBy(r.Call)] {
		p.news++
	}
	if r.Approval != nil {
		p.approvals[id] = r.Approval
	}
	p.highest[fencedBy(r.Call)] = r.Call.Epoch
	holder := r.Call.Holder + " in " + r.Call.Session
	if before, known := p.holders[id]; known && before != holder {
		p.mu.Unlock()
		return apierr.Of(codes.AlreadyExists, toolsv1.ErrorReason_ERROR_REASON_CALL_ID_REUSED, "the id is of another call")
	}
	p.holders[id] = holder
	if r.Answer != nil {
		p.answers[id] = append(p.answers[id], r.Answer)
	}
	p.users[id] = acting.Tenant + "/" + acting.User
	done := p.results[id]
	p.mu.Unlock()
	if err := p.away(r.Tool); err != nil {
		return err
	}
	if done != nil {
		return stream.Send(result(done))
	}
	switch {
	case r.Tool == "Write" && r.Approval == nil:
		p.mu.Lock()
		p.asked++
		p.mu.Unlock()
		if err := stream.Send(decide(toolsv1.CallDecisionKind_CALL_DECISION_KIND_ASK)); err != nil {
			return err
		}
		return stream.Send(&toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Ask{Ask: &toolsv1.CallAsk{
			Digest: digest(r), Rule: "Write", SuggestedRules: []string{"Write(./a)", "Write"},
		}}})
	case r.Tool == "Elicit" && r.Answer.GetId() != "2": // asks twice
		return stream.Send(&toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Question{Question: elicits(r.Answer)}})
	case r.Tool == "Elicit":
		return stream.Send(result(p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_OK, r.Answer.Action.String()+" "+r.Answer.ContentJson)))
	case r.Approval != nil && !r.Approval.Approved:
		return stream.Send(result(p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_REFUSED, r.Approval.Comment)))
	}
	if r.Tool == "Tell" {
		return p.tell(id, stream)
	}
	if err := stream.Send(decide(toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW)); err != nil {
		return err
	}
	return p.execute(r, stream)
}

func (p *peers) execute(r *toolsv1.CallToolRequest, stream grpc.ServerStreamingServer[toolsv1.CallToolResponse]) error {
	id := r.Call.CallId
	if !slices.Contains(delegated, r.Tool) { // a delegated call is executed when its result is reported
		p.mu.Lock()
		if r.Tool != "Block" || p.cancels[id] == nil { // one that runs is attached to
			p.executed[id]++
			p.given[id] = p.environment
		}
		if r.Tool == "Bash" || r.Tool == "Write" {
			p.changes = append(p.changes, id)
		}
		p.mu.Unlock()
	}
	if strings.Contains(r.ArgumentsJson, `"command":"fail"`) {
		return stream.Send(result(p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_ERROR, "It does not work.")))
	}
	tool := r.Tool
	if strings.Contains(r.ArgumentsJson, `"command":"block"`) {
		tool = "Block"
	}
	switch tool {
	case "Task", "TodoWrite", "create_agent", "edit_agent", "AskUserQuestion":
		return stream.Send(&toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Delegated{Delegated: &toolsv1.CallDelegated{Tool: r.Tool, ArgumentsJson: r.ArgumentsJson}}})
	case "Fail":
		return stream.Send(result(p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_ERROR, "It does not work.")))
	case "Block":
		ctx, cancel := context.WithCancel(stream.Context())
		p.mu.Lock()
		p.cancels[id] = cancel
		p.mu.Unlock()
		p.blocked <- id
		<-ctx.Done()
		return stream.Context().Err()
	case "Picture":
		done := p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_OK, "")
		done.Content = []*commonv1.Content{picture("image/png", []byte("no picture"))}
		return stream.Send(result(done))
	case "Long":
		return stream.Send(result(p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_OK, longResult)))
	case "Background":
		p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_OK, "It runs on.").Operation = "operations/" + id
		return stream.Send(result(p.results[id]))
	case "check_operation":
		done := p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_OK, "It has ended.")
		done.Observed = &toolsv1.OperationStatus{Operation: "operations/x", State: toolsv1.OperationState_OPERATION_STATE_SUCCEEDED, Progress: "make"}
		return stream.Send(result(done))
	default:
		done := p.finish(id, toolsv1.CallOutcome_CALL_OUTCOME_OK, "result of "+r.Tool) // also when the stream breaks
		if err := stream.Send(&toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Output{Output: &toolsv1.CallOutput{Stream: "stdout", Data: []byte("out of " + id)}}}); err != nil {
			return err
		}
		return stream.Send(result(done))
	}
}

func (p *peers) ReportResult(_ context.Context, r *toolsv1.ReportResultRequest) (*toolsv1.ReportResultResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.results[r.Call.CallId] == nil {
		p.results[r.Call.CallId] = r.Result
		p.executed[r.Call.CallId]++
	}
	return &toolsv1.ReportResultResponse{}, nil
}

func (p *peers) CancelCall(_ context.Context, r *toolsv1.CancelCallRequest) (*toolsv1.CancelCallResponse, error) {
	if err := p.away("CancelCall"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.cancelled[r.Call.CallId] = true
	if cancel := p.cancels[r.Call.CallId]; cancel != nil {
		cancel()
	}
	p.mu.Unlock()
	return &toolsv1.CancelCallResponse{Result: p.finish(r.Call.CallId, toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED, "The call was stopped.")}, nil
}

func (p *peers) finish(id string, o toolsv1.CallOutcome, text string) *toolsv1.CallResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.results[id] == nil {
		p.results[id] = &toolsv1.CallResult{Outcome: o, Content: []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: strings.TrimSpace(text + " ")}}}}}
	}
	return p.results[id]
}

func result(r *toolsv1.CallResult) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Result{Result: r}}
}

func decide(d toolsv1.CallDecisionKind) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Decision{Decision: &toolsv1.CallDecision{Decision: d, Rule: "test"}}}
}
