package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// Prefix begins the resource names of operations.
const Prefix = "operations/"

const maxWait = 60 // seconds

var checkSpec = tool.Spec{
	Name: "check_operation",
	Description: `Tells how an operation is that an earlier call handed back, such as a command that runs in the background: its state, and its output since you last looked.

- With wait_seconds it waits up to that long for the operation to end. Prefer that to asking again and again.
- Much output is cut: let a command write to a file when you need all of it.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "operation": {"type": "string", "minLength": 1, "description": "The operation, as operations/…"},
    "wait_seconds": {"type": "number", "minimum": 0, "maximum": 60, "description": "How long to wait for its end, in seconds; 0 when left out"},
    "offset": {"type": "integer", "minimum": 0, "description": "Shows the output from this byte on, instead of what is new"}
  },
  "required": ["operation"],
  "additionalProperties": false
}`,
	Provider: tool.Builtin, ReadOnly: true, Parallel: true, Idempotent: true,
}

var cancelSpec = tool.Spec{
	Name:        "cancel_operation",
	Description: "Stops an operation that an earlier call returned, with everything that it started, and reports how it ended.",
	InputSchema: `{
  "type": "object",
  "properties": {
    "operation": {"type": "string", "minLength": 1, "description": "The operation, as operations/…"}
  },
  "required": ["operation"],
  "additionalProperties": false
}`,
	Provider: tool.Builtin, Idempotent: true,
}

// Tools returns the tools with which a model handles operations.
func (m *Manager) Tools() ([]*tool.Tool, error) {
	check, err1 := tool.New(checkSpec, checker{m})
	cancel, err2 := tool.New(cancelSpec, canceller{m})
	return []*tool.Tool{check, cancel}, errors.Join(err1, err2)
}

type arguments struct {
	Operation   string
	WaitSeconds tool.Number `json:"wait_seconds"`
	Offset      *tool.Number
}

// find reads an operation of the call's session. If it returns nil, the result is
// the answer for the model.
func (m *Manager) find(ctx context.Context, c tool.Call) (*store.Operation, arguments, *tool.Result, error) {
	var p arguments
	if err := json.Unmarshal(c.Arguments, &p); err != nil {
		return nil, p, nil, fmt.Errorf("decode the arguments of a checked call: %w", err)
	}
	id := strings.TrimPrefix(p.Operation, Prefix)
	o, err := m.Store.GetOperation(ctx, store.OperationKey{Tenant: principal.Tenant(ctx), ID: id})
	switch {
	case errors.Is(err, store.ErrNoOperation) || err == nil && o.Session != c.Session:
		return nil, p, tool.Failed(fmt.Sprintf("There is no operation %q in this session. It may have ended long ago and been deleted.", p.Operation)), nil
	case err != nil:
		return nil, p, nil, err
	}
	return &o, p, nil, nil
}

type checker struct{ *Manager }

// Run waits for the operation and returns its state.
func (m checker) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	o, p, none, err := m.find(ctx, c)
	if o == nil {
		return none, err
	}
	wait := time.Duration(min(p.WaitSeconds, maxWait) * tool.Number(time.Second))
	if wait > 0 && o.State == store.Running {
		waiting, cancel := context.WithTimeout(ctx, wait)
		_, err := m.Await(waiting, o.OperationKey)
		cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil && waiting.Err() == nil {
			return nil, err
		}
	}
	now, from, err := m.Store.ReadOperation(ctx, o.OperationKey, c.ID)
	if err != nil {
		return nil, err
	}
	if p.Offset != nil {
		from = p.Offset.Within(0, math.MaxInt64)
	}
	return observed(now, from), nil
}

type canceller struct{ *Manager }

// Run stops the operation.
func (m canceller) Run(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
	o, _, none, err := m.find(ctx, c)
	if o == nil {
		return none, err
	}
	now, err := m.Cancel(ctx, o.OperationKey, nil)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	_, from, err := m.Store.ReadOperation(ctx, o.OperationKey, c.ID)
	if err != nil {
		return nil, err
	}
	return observed(now, from), nil
}

// States are the public names of the states.
var States = map[store.OperationState]toolsv1.OperationState{
	store.Running:   toolsv1.OperationState_OPERATION_STATE_RUNNING,
	store.Succeeded: toolsv1.OperationState_OPERATION_STATE_SUCCEEDED,
	store.Failed:    toolsv1.OperationState_OPERATION_STATE_FAILED,
	store.Stopped:   toolsv1.OperationState_OPERATION_STATE_CANCELLED,
	store.Unknown:   toolsv1.OperationState_OPERATION_STATE_UNKNOWN,
	store.Expired:   toolsv1.OperationState_OPERATION_STATE_EXPIRED,
}

// observed returns the result of a call that looked at an operation.
func observed(o store.Operation, from int64) *tool.Result {
	r := tool.OK(describe(o, from))
	r.Observed = &toolsv1.OperationStatus{Operation: Prefix + o.ID, State: States[o.State], Progress: o.Progress}
	return r
}

// describe describes an operation for a model, with its output from a position
// on.
func describe(o store.Operation, from int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Operation %s%s: %s", Prefix, o.ID, o.State)
	if o.ExitCode != nil {
		fmt.Fprintf(&b, ", exit code %d", *o.ExitCode)
	}
	if o.Progress != "" {
		fmt.Fprintf(&b, " (%s)", o.Progress)
	}
	switch o.State {
	case store.Unknown:
		b.WriteString("\n" + unknownText)
	case store.Expired:
		b.WriteString("\nIt ran for as long as an operation may, and was stopped.")
	}
	out := strings.TrimRight(Text(o.Head, o.Tail, o.Bytes, from), "\n")
	switch {
	case out == "" && o.Bytes == 0:
		b.WriteString("\nIt has written nothing.")
	case out == "":
		fmt.Fprintf(&b, "\nIt has written nothing since you last looked (%d bytes in all).", o.Bytes)
	case from > 0:
		fmt.Fprintf(&b, "\nOutput from byte %d on:\n%s", from, out)
	default:
		b.WriteString("\nOutput:\n" + out)
	}
	return b.String()
}
