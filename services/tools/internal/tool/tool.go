// Package tool says what a tool is: its description, the check of its
// arguments, and the port through which a call of it runs.
//
// The package knows no tool, no store and no transport. Results use the
// contract's own message types, because they are stored and sent as they are.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
)

// Builtin is the provider of the tools that are part of this service.
const Builtin = "builtin"

// MaxNameBytes is how long a tool's name may be: what the model APIs accept.
const MaxNameBytes = 128

var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// ErrUnavailable says that what a tool needs to run cannot be reached. The call
// had not ended: asking for it again goes on with it.
var ErrUnavailable = errors.New("the sandbox service cannot be reached")

// ErrStaleEpoch says that a lower service has seen a higher epoch of the
// session than the one the call was made under.
var ErrStaleEpoch = errors.New("the session was taken over by another holder")

// ErrCancelled is the cause of the context of a call that was cancelled. A tool
// then stops what it started, or lets it end, and returns only when its effects
// have ended.
var ErrCancelled = errors.New("the call was cancelled")

// ErrClosing is the cause of the context of a call whose service stops. A tool
// then lets go of what it started and leaves it running: the call is taken up
// again by its id.
var ErrClosing = errors.New("the tools service is stopping")

// ErrTakenOver is the cause of the context of a call that another replica has
// taken over. A tool lets go as with ErrClosing.
var ErrTakenOver = errors.New("another replica has taken the call over")

// ErrPlaceLost is the cause of the context of a call whose sandbox node is lost, and
// with it all that the call did to the workspace. A tool lets go as with ErrClosing.
var ErrPlaceLost = errors.New("the sandbox node of the call is lost")

// Spec describes a tool to models and to those who list tools.
type Spec struct {
	// Name is what the model calls.
	Name string
	// Description is what the model reads.
	Description string
	// InputSchema is the JSON Schema (2020-12) of the arguments, the text of an
	// object; New writes it as models are told of it.
	InputSchema string
	// Provider is where the tool comes from: Builtin, or a provider's name.
	Provider string
	// ReadOnly tools change nothing.
	ReadOnly bool
	// Parallel calls may run beside others of the same step.
	Parallel bool
	// Idempotent calls do no harm when they are repeated.
	Idempotent bool
}

// Call is one call, permitted and journaled, as a Runner sees it.
type Call struct {
	// Session is the session's resource name.
	Session string
	// Epoch is the epoch under which the lower services are called.
	Epoch int64
	// ID is the call's id: the idempotency key of all that is done for it.
	ID string
	// WorkspaceGeneration is passed on to the sandbox, and so is Node, which names
	// the one that is meant. The context of a Runner's method leads there (kit/node).
	WorkspaceGeneration int64
	Node                string
	// Arguments are valid against the tool's schema, without duplicate names.
	Arguments json.RawMessage
	// Resumed says that the call had been started before, perhaps by a process
	// that is no more: what it started may still run, or have ended.
	Resumed bool
	// First says that nobody has asked the sandbox for the call before, and that the journal
	// keeps whoever makes it again from saying so.
	First bool
	// Begun says that the sandbox was seen to have what the call started: if it
	// has it no more, the call's end is not known.
	Begun bool
	// Seen, unless it is nil, is to be called once the sandbox has what the call
	// started.
	Seen func()
	// Open reports an error when the call has been settled meanwhile, or taken
	// over by another replica. It is asked before what is gone is started anew or
	// called lost: it may be gone because its result was recorded. The error is
	// returned as it is.
	Open func(ctx context.Context) error
	// Leads is where the call's path leads without symbolic links, when the permission
	// profile decided on that: the tool opens it there, through no link. Empty follows
	// links.
	Leads string
	// Withheld are globs of paths that a tool that searches leaves out.
	Withheld []string
}

// Sink takes what a running call tells. Its methods may be called from one
// goroutine at a time, never block for long, and copy what they keep.
type Sink interface {
	// Progress tells people how far the call is.
	Progress(message string)
	// Output brings more output of `stdout` or `stderr`.
	Output(stream string, data []byte)
}

// Result is how a call ended, as the model shall see it.
type Result = toolsv1.CallResult

// Runner runs the calls of a tool.
//
// Run returns a result for everything that the model should know, failures of
// the tool included. An error means that the call could not be made or its end
// not be learnt: ErrUnavailable, ErrStaleEpoch, the cause of ctx, or the status
// of a lower service. Run may be called again for the same call then.
type Runner interface {
	Run(ctx context.Context, c Call, out Sink) (*Result, error)
}

// Finisher is a Runner that keeps something until a call's result is recorded.
type Finisher interface {
	// Finished says that the call's result is recorded.
	Finished(ctx context.Context, c Call) error
}

// Canceller is a Runner whose calls can leave something running behind when
// nobody runs them any more.
type Canceller interface {
	// Cancel stops whatever runs for the call, started by any process, and
	// returns when its effects have ended.
	Cancel(ctx context.Context, c Call) error
}

// Resolver is a Runner whose calls have a path.
type Resolver interface {
	// Resolve returns where a call's path leads without symbolic links, or why
	// that cannot be told. An error means that it could not be asked.
	Resolve(ctx context.Context, c Call, path string) (leads, doubt string, err error)
}

// Tool is a tool that can be called.
type Tool struct {
	Spec
	// Runner runs the calls; nil means that the caller does it itself and
	// reports the result.
	Runner Runner

	schema *schema.Schema
}

// New checks a tool's name and schema and makes the tool. A nil runner makes a
// delegated one.
func New(spec Spec, runner Runner) (*Tool, error) {
	if len(spec.Name) > MaxNameBytes || !namePattern.MatchString(spec.Name) {
		return nil, fmt.Errorf("tool name %q: want a letter, then letters, digits, _ or -, at most %d in all", spec.Name, MaxNameBytes)
	}
	compiled, err := schema.Compile(spec.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s is %w", spec.Name, err)
	}
	if spec.InputSchema, err = schema.Object(spec.InputSchema); err != nil {
		return nil, fmt.Errorf("the schema of %s is %w", spec.Name, err)
	}
	return &Tool{Spec: spec, Runner: runner, schema: compiled}, nil
}

// Delegated reports whether the caller runs the tool itself.
func (t *Tool) Delegated() bool { return t.Runner == nil }

// Arguments parses arguments as a model wrote them and checks them against the
// tool's schema. The error is written for the model, who can mend it.
func (t *Tool) Arguments(text string) (schema.Arguments, error) {
	args, err := schema.ParseArguments(text)
	if err != nil {
		return schema.Arguments{}, err
	}
	return args, t.schema.CheckArguments(args)
}
