package operation

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const unknownText = "The sandbox lost this operation, and how it ended is not known. It may have taken effect: check before repeating it."

// judge decides how an operation ended, given the end of its exec or the error
// of reading it.
func (w *watcher) judge(n *store.OperationNote, exited *sandboxv1.ExecExited, err error) {
	w.mu.Lock()
	late := w.late
	w.mu.Unlock()
	var head string
	switch {
	case err != nil && apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED):
		n.State, head = stopped(late)
	case err != nil:
		n.State, head = store.Unknown, unknownText
	default:
		n.State, head = ended(exited, late)
		if exited.GetReason() == sandboxv1.ExitReason_EXIT_REASON_EXITED {
			code := exited.GetExitCode()
			n.ExitCode = &code
		}
	}
	text := head
	if out := Text(n.Head, n.Tail, n.Bytes, 0); out != "" {
		text = strings.TrimPrefix(head+"\n"+out, "\n")
	}
	if exited.GetOutputTruncated() {
		text += "\n[It wrote more output than is kept; the rest was thrown away.]"
	}
	brought := tool.OK(text)
	brought.Network = exited.GetNetwork()
	n.Content, _ = proto.Marshal(brought) // valid text always encodes
}

func stopped(late bool) (store.OperationState, string) {
	if late {
		return store.Expired, "It ran for as long as an operation may, and was stopped."
	}
	return store.Stopped, "It was cancelled. What it had done by then stays done."
}

func ended(e *sandboxv1.ExecExited, late bool) (store.OperationState, string) {
	switch e.GetReason() {
	case sandboxv1.ExitReason_EXIT_REASON_EXITED:
		if e.GetExitCode() == 0 {
			return store.Succeeded, ""
		}
		return store.Failed, fmt.Sprintf("Exit code %d", e.GetExitCode())
	case sandboxv1.ExitReason_EXIT_REASON_SIGNALED:
		return store.Failed, fmt.Sprintf("The command was ended by signal %d.", e.GetSignal())
	case sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT:
		return stopped(true)
	case sandboxv1.ExitReason_EXIT_REASON_CANCELLED:
		return stopped(late)
	case sandboxv1.ExitReason_EXIT_REASON_LOST:
		return store.Unknown, unknownText
	default:
		return store.Failed, strings.TrimSuffix("The command was stopped by the sandbox: "+e.GetMessage(), ": ")
	}
}

// Text returns the output from a position on, for people and models.
func Text(head, tail []byte, total, place int64) string {
	out, omitted := From(head, tail, total, place)
	if omitted == 0 {
		return strings.ToValidUTF8(string(out), "\uFFFD")
	}
	cut := len(out) - len(tail)
	return strings.ToValidUTF8(string(out[:cut]), "\uFFFD") + fmt.Sprintf("\n... [%d bytes left out] ...\n", omitted) +
		strings.ToValidUTF8(string(out[cut:]), "\uFFFD")
}

// Content decodes the result of an operation.
func Content(o store.Operation) (*toolsv1.CallResult, error) {
	r := &toolsv1.CallResult{}
	if err := proto.Unmarshal(o.Content, r); err != nil {
		return nil, fmt.Errorf("decode the result of an operation: %w", err)
	}
	return r, nil
}
