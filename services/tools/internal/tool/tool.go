// Package tool defines tools: their description, the check of their arguments,
// and the port through which their calls run.
//
// The package knows no specific tool, no store and no transport. Results use
// the contract's own message types, because they are stored and sent unchanged.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
)

// Builtin is the provider of the tools that are part of this service.
const Builtin = "builtin"

// MaxNameBytes bounds a tool's name: the limit of the model APIs.
const MaxNameBytes = 128

var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// ErrUnavailable says that a tool's dependency cannot be reached. The call had
// not ended: a repeated request continues it.
var ErrUnavailable = errors.New("the sandbox service cannot be reached")

// ErrStaleEpoch says that a lower service has seen a higher epoch of the
// session than the call's.
var ErrStaleEpoch = errors.New("the session was taken over by another holder")

// ErrCancelled is the cause of the context of a cancelled call. The tool then
// stops its command, or lets it end, and returns only when its effects have
// ended.
var ErrCancelled = errors.New("the call was cancelled")

// ErrClosing is the cause of the context of a call whose service stops. The
// tool then releases its command and leaves it running: the call is resumed by
// its id.
var ErrClosing = errors.New("the tools service is stopping")

// ErrTakenOver is the cause of the context of a call that another replica has
// taken over. The tool releases the command as with ErrClosing.
var ErrTakenOver = errors.New("another replica has taken the call over")

// ErrPlaceLost is the cause of the context of a call whose sandbox node is lost,
// with all changes of the call to the workspace. The tool releases the command as
// with ErrClosing.
var ErrPlaceLost = errors.New("the sandbox node of the call is lost")

// Spec describes a tool to models and in lists.
type Spec struct {
	// Name is the name that the model uses.
	Name string
	// Description is what the model reads.
	Description string
	// InputSchema is the JSON Schema (2020-12) of the arguments, the text of an
	// object. New converts it into the form for models.
	InputSchema string
	// OutputSchema is that of a result's StructuredJson, for programs; empty: none.
	OutputSchema string
	// Provider is Builtin, or the provider's name.
	Provider string
	// ReadOnly tools change nothing.
	ReadOnly bool
	// Parallel calls may run beside others of the same step.
	Parallel bool
	// Idempotent calls may be repeated without harm.
	Idempotent bool
	// Binding identifies the server and the definition of a tool of a server, for grants; empty for others.
	Binding string
}

// Call is a permitted and journaled call, in the form for a Runner.
type Call struct {
	// Session is the session's resource name.
	Session string
	// Holder is the session that makes the call, if it works in the workspace of Session;
	// empty: Session itself.
	Holder string
	// Epoch is the epoch under which the lower services are called.
	Epoch int64
	// ID is the call's id: the idempotency key of all its requests.
	ID string
	// WorkspaceGeneration and Node, the name of the call's node, are passed on to the
	// sandbox. A Runner sends its requests to that node.
	WorkspaceGeneration int64
	Node                string
	// Arguments are valid against the tool's schema, without duplicate names.
	Arguments json.RawMessage
	// Resumed says that the call was started before, perhaps by a dead process:
	// its command may still run, or have ended.
	Resumed bool
	// Answer is a person's answer to the question that the last Run of the call asked.
	Answer *Answer
	// Begun says that the sandbox was seen to have the call's command: if it no
	// longer has it, the call's end is not known.
	Begun bool
	// Seen, unless it is nil, must be called once the sandbox has the call's
	// command.
	Seen func()
	// Open returns an error when the call has been settled meanwhile, or taken
	// over by another replica. A Runner calls it before it starts a missing
	// command again or reports it as lost: the command may be missing because its
	// result was recorded. The Runner returns the error unchanged.
	Open func(ctx context.Context) error
	// Leads is the target of the call's path without symbolic links, if the permission
	// profile decided on it: the tool opens that target and follows no link. If it is
	// empty, the tool follows links.
	Leads string
	// Withheld are globs of paths that a searching tool leaves out.
	Withheld []string
}

// Answer is a person's answer to what an earlier Run of the call asked.
type Answer struct {
	*commonv1.QuestionAnswer
	// State is that of the question.
	State []byte
}

// AskingError is the error of a Run that ends with a question for a person. The call goes on
// in another Run, with the answer.
type AskingError struct {
	Question *commonv1.Question
	// State is what that Run needs besides.
	State []byte
}

// Error implements error.
func (*AskingError) Error() string { return "the tool asks a person" }

// Sink receives the progress and output of a running call. Its methods may be
// called from one goroutine at a time, never block for long, and copy what they
// keep.
type Sink interface {
	// Progress reports the progress of the call to people.
	Progress(message string)
	// Ask asks a person while the call goes on running, and waits for the answer. A
	// process that ends meanwhile loses the call. A second question waits for no
	// answer: it is an error.
	Ask(ctx context.Context, q *commonv1.Question) (*commonv1.QuestionAnswer, error)
	// Output adds output of `stdout` or `stderr`.
	Output(stream string, data []byte)
}

// Result is the end of a call, in the form for the model.
type Result = toolsv1.CallResult

// Runner runs the calls of a tool.
//
// Run returns a result for everything that the model should know, including
// failures of the tool. An error means that the call could not be made or its
// end is unknown: ErrUnavailable, ErrStaleEpoch, the cause of ctx, or the
// status of a lower service. Run may then be called again for the same call.
type Runner interface {
	Run(ctx context.Context, c Call, out Sink) (*Result, error)
}

// Finisher is a Runner that keeps data until a call's result is recorded.
type Finisher interface {
	// Finished says that the call's result is recorded.
	Finished(ctx context.Context, c Call) error
}

// Canceller is a Runner whose calls can leave a command running after their Run
// has ended.
type Canceller interface {
	// Cancel stops the call's command, whichever process started it, and
	// returns when its effects have ended.
	Cancel(ctx context.Context, c Call) error
}

// Resolver is a Runner whose calls have a path.
type Resolver interface {
	// Resolve returns the target of a call's path without symbolic links, or
	// why it is unknown. An error means that the sandbox could not be asked.
	Resolve(ctx context.Context, c Call, path string) (leads, doubt string, err error)
}

// Tool is a tool that can be called.
type Tool struct {
	Spec
	// Runner runs the calls; nil means that the caller runs them itself and
	// reports the results.
	Runner Runner

	schema *schema.Schema
}

// New checks a tool's name and schema and returns the tool. With a nil runner,
// its calls are delegated.
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
// tool's schema. The error is written for the model, which can correct it.
func (t *Tool) Arguments(text string) (schema.Arguments, error) {
	args, err := schema.ParseArguments(text)
	if err != nil {
		return schema.Arguments{}, err
	}
	return args, t.schema.CheckArguments(args)
}
