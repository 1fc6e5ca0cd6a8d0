package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// modelTools returns the tools that the model may ask for: the agent's and the
// client's, by name, so that the beginning of each request stays the same.
func (w *Worker) modelTools(ctx context.Context) ([]model.Tool, error) {
	var tools []model.Tool
	parallel, readOnly := map[string]bool{}, map[string]bool{}
	token := ""
	for {
		var page *toolsv1.ListToolsResponse
		err := w.patiently(ctx, w.tellAway(ctx, "The list of tools cannot be read now"), func() (err error) {
			page, err = w.deps.Tools.ListTools(ctx, &toolsv1.ListToolsRequest{PageSize: 1000, PageToken: token})
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			name := strings.TrimPrefix(t.Name, "tools/")
			if !slices.Contains(w.Spec.Tools, name) || w.Active.Client[name] != nil {
				continue
			}
			parallel[name], readOnly[name] = t.Parallel, t.ReadOnly
			if tools, err = appendTool(tools, name, t.Description, t.InputSchemaJson); err != nil {
				return nil, err
			}
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	for name, t := range w.Active.Client {
		var err error
		if tools, err = appendTool(tools, name, t.Description, t.InputSchemaJson); err != nil {
			return nil, err
		}
	}
	own, err := w.finishTool()
	if err != nil {
		return nil, err
	}
	tools = append(tools, own...)
	slices.SortFunc(tools, func(a, b model.Tool) int { return strings.Compare(a.Name, b.Name) })
	w.parallelTools, w.readOnlyTools = parallel, readOnly
	return tools, nil
}

// appendTool adds a tool whose schema is JSON text; an empty schema stands for any object. The bytes are the
// same in every request.
func appendTool(tools []model.Tool, name, description, input string) ([]model.Tool, error) {
	text, err := schema.Typed(cmp.Or(input, anyObject))
	if err != nil {
		return nil, fmt.Errorf("the schema of tool %s is %w", name, err)
	}
	return append(tools, model.Tool{Name: name, Description: description, InputSchema: json.RawMessage(text)}), nil
}

// anyObject is the schema of a tool without one.
const anyObject = `{"type":"object"}`

// warming is a workspace that is being made beside the first model call.
type warming struct {
	done   chan struct{}
	cancel context.CancelFunc
	err    error
	away   chan error          // receives the error if the making takes long
	failed []repositoryFailure // reported to the turn once
}

// warmWorkspace makes the workspace and its repositories in the background, if the
// agent has tools.
func (w *Worker) warmWorkspace(ctx context.Context) *warming {
	return w.warmWith(ctx, w.cloneRepositories)
}

// warmAgain makes the workspace anew because another user has run a command since, whose
// variables it has. It keeps the failures that are not reported yet.
func (w *Worker) warmAgain(ctx context.Context, before *warming) *warming {
	return w.warmWith(ctx, func(context.Context) []repositoryFailure { return before.failed })
}

// warmWith makes the workspace in the background. fill returns what failed.
func (w *Worker) warmWith(ctx context.Context, fill func(context.Context) []repositoryFailure) *warming {
	ctx, cancel := context.WithCancel(ctx)
	g := &warming{done: make(chan struct{}), cancel: cancel, away: make(chan error, 1)}
	if len(w.Spec.Tools) == 0 {
		close(g.done)
		return g
	}
	ref := w.CallRef(w.Active.ID + ".workspace")
	go func() {
		defer close(g.done)
		if g.err = w.ensureWorkspace(ctx, ref, func(err error) { g.away <- err }); g.err == nil {
			g.failed = fill(ctx)
		}
	}()
	return g
}

// ensureWorkspace makes the workspace for commands, with the variables of the acting
// user. tell may be nil.
func (w *Worker) ensureWorkspace(ctx context.Context, ref *commonv1.CallRef, tell func(error)) error {
	who, _ := principal.From(ctx)
	return w.ensure(ctx, ref, tell, func(want *sandboxv1.EnsureWorkspaceRequest) error {
		variables, err := w.Store.Variables(ctx, store.Owner{Tenant: w.Lease.Tenant, User: who.User})
		if err != nil {
			return status.Error(codes.Unavailable, "read the variables of the turn's user: "+err.Error())
		}
		want.Environment, want.Warm = agent.Environment(variables), w.Spec.RunsCommands()
		return nil
	})
}

// ensureFiles makes the workspace for work that runs no command. The workspace keeps the
// variables and the sandbox of a running turn, whose user may be another one.
func (w *Worker) ensureFiles(ctx context.Context, ref *commonv1.CallRef) error {
	return w.ensure(ctx, ref, nil, func(*sandboxv1.EnsureWorkspaceRequest) error { return nil })
}

// ensure makes the workspace. add completes each request with what commands
// need.
func (w *Worker) ensure(ctx context.Context, ref *commonv1.CallRef, tell func(error), add func(*sandboxv1.EnsureWorkspaceRequest) error) error {
	err := w.patiently(ctx, tell, func() error {
		want := w.Spec.Workspace(w.Proto, ref)
		want.MustExist = w.wasMade(ref)
		if err := add(want); err != nil {
			return err
		}
		_, err := w.deps.Workspaces.EnsureWorkspace(ctx, want)
		if want.MustExist && apierr.Reason(err) == "WORKSPACE_NOT_FOUND" {
			w.gone.Store(ref.WorkspaceGeneration)
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.noteMade(ctx, ref.WorkspaceGeneration)
}

// workspaceAdvice says what to do about a workspace that could not be made: a refusal
// needs another advice than a service that is away.
func workspaceAdvice(err error) string {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound:
		return "The sandbox's operator does not allow what the agent or the session asks for: ask for something else, or have the operator allow it."
	default:
		return "Check that the sandbox service runs, then send the message again."
	}
}

// wait waits for the workspace, and tells people when that takes long.
func (g *warming) wait(ctx context.Context, tell func(error)) error {
	for {
		select {
		case <-g.done:
			return g.err
		case err := <-g.away:
			tell(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop ends the making and waits for its goroutine.
func (g *warming) stop() {
	g.cancel()
	<-g.done
}

func ensureUsage(u **sessionv1.Usage) *sessionv1.Usage {
	if *u == nil {
		*u = &sessionv1.Usage{}
	}
	return *u
}
