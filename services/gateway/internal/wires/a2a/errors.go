package a2a

import (
	"bytes"
	"encoding/json"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// domain is that of the protocol's own errors.
const domain = "a2a-protocol.org"

// Reasons of the protocol's own errors.
const (
	taskNotFound       = "TASK_NOT_FOUND"
	taskNotCancelable  = "TASK_NOT_CANCELABLE"
	pushUnsupported    = "PUSH_NOTIFICATION_NOT_SUPPORTED"
	unsupported        = "UNSUPPORTED_OPERATION"
	contentType        = "CONTENT_TYPE_NOT_SUPPORTED"
	versionUnsupported = "VERSION_NOT_SUPPORTED"
)

// Codes of JSON-RPC.
const (
	rpcParseError     = -32700
	rpcInvalidRequest = -32600
	rpcMethodNotFound = -32601
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
)

// own are the codes of the protocol's own errors: of gRPC, whose HTTP status is the protocol's, and of JSON-RPC.
var own = map[string]struct {
	grpc codes.Code
	rpc  int
}{
	taskNotFound: {codes.NotFound, -32001}, taskNotCancelable: {codes.FailedPrecondition, -32002}, unsupported: {codes.FailedPrecondition, -32004},
	pushUnsupported: {codes.FailedPrecondition, -32003},
	contentType:     {codes.InvalidArgument, -32005}, versionUnsupported: {codes.FailedPrecondition, -32009},
}

// fail returns an error of the protocol's own.
func fail(reason, text string, opts ...apierr.Option) error {
	return apierr.New(own[reason].grpc, domain, reason, text, opts...)
}

// noTask is the error for a task that is not there, or not the caller's.
func noTask(id string) error {
	return fail(taskNotFound, "there is no task "+problem.Excerpt(id)+" of this agent", apierr.Metadata(map[string]string{"taskId": problem.Excerpt(id)}))
}

// missing makes a missing session or turn a missing task.
func missing(err error, id string) error {
	if c := apierr.Code(err); c == codes.NotFound || c == codes.InvalidArgument {
		return noTask(id)
	}
	return err
}

// bad refuses a request because of a field.
func bad(field, what string) error {
	return apierr.New(codes.InvalidArgument, problem.Domain, problem.ReasonBadParameter, field+" "+what, apierr.Field(field, what))
}

// rpcCode returns the code of an error in JSON-RPC.
func rpcCode(err error) int {
	st := problem.Status(err)
	if apierr.ErrorDomain(st.Err()) == domain {
		return own[apierr.Reason(st.Err())].rpc
	}
	switch problem.HTTPStatus(err) {
	case http.StatusBadRequest, http.StatusConflict, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return rpcInvalidParams
	case http.StatusMethodNotAllowed:
		return rpcInvalidRequest
	}
	return rpcInternal
}

// details returns the details of an error as the protocol has them: a list of objects, each with its type.
func details(err error) json.RawMessage {
	var st struct {
		Details json.RawMessage `json:"details"`
	}
	if json.Unmarshal(problem.JSON(problem.Status(err)), &st) != nil {
		return nil // the status is JSON
	}
	return st.Details
}

// rpcError returns the answer of JSON-RPC to a request that failed.
func rpcError(id json.RawMessage, code int, err error) object {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	e := object{"code": code, "message": problem.Status(err).Message()}
	if d := details(err); d != nil {
		e["data"] = d
	}
	return object{"jsonrpc": "2.0", "id": id, "error": e}
}

// restError returns the body of an error over HTTP.
func restError(err error) object {
	st := problem.Status(err)
	e := object{"code": problem.HTTPStatus(err), "status": codeName(st.Code()), "message": st.Message()}
	if d := details(err); d != nil {
		e["details"] = d
	}
	return object{"error": e}
}

// codeName returns the name of a code, as NOT_FOUND.
func codeName(c codes.Code) string {
	var name []byte
	for i, r := range []byte(c.String()) {
		if i > 0 && r >= 'A' && r <= 'Z' {
			name = append(name, '_')
		}
		name = append(name, bytes.ToUpper([]byte{r})...)
	}
	if c == codes.Canceled {
		return "CANCELLED"
	}
	return string(name)
}

// Refuse implements door.Door: in the form of the binding that the path is of.
func (s *Server) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if _, rest, _ := split(r.URL.Path); rest == "" {
		_ = refuseRPC(w, nil, rpcCode(err), err)
		return
	}
	refuse(w, wire.FaultOf(err).Status, mediaType, restError(err), err)
}

// refuseRPC answers a call of JSON-RPC with an error. What any agent could answer is of the call, and its HTTP status is 200;
// what the server refuses, such as a credential or a client that asks too often, has the HTTP status.
func refuseRPC(w http.ResponseWriter, id json.RawMessage, code int, err error) error {
	status := wire.FaultOf(err).Status
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		status = http.StatusOK
	}
	refuse(w, status, jsonType, rpcError(id, code, err), err)
	return nil
}

func refuse(w http.ResponseWriter, status int, kind string, body object, err error) {
	f := wire.FaultOf(err)
	f.Headers(w.Header(), kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it is all text; the client may have gone
}
