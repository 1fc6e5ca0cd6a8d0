package problem

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// excerpt bounds the repeated part of a client's text, in bytes.
const excerpt = 200

// Excerpt shortens a client's text, so that the answer stays small.
func Excerpt(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= excerpt {
		return s
	}
	cut := excerpt
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Write answers a request with an error. Nothing may have been written before.
func Write(w http.ResponseWriter, err error) {
	st := Status(err)
	if after, ok := RetryAfter(st); ok {
		w.Header().Set("Retry-After", Seconds(after))
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Cache-Control", "no-store")
	if info, ok := apierr.Detail[*errdetails.RequestInfo](st.Err()); ok {
		h.Set(headers.RequestID, info.GetRequestId()) // the service's log has the cause under its own id
	}
	h.Set("Content-Type", "application/json")
	code := HTTPStatus(err)
	if code == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(code)
	// An error here means that the client has gone.
	_, _ = w.Write(append(JSON(st), '\n'))
}

// Seconds returns a wait for the header Retry-After. It rounds up: a client that retries too early is refused again.
func Seconds(wait time.Duration) string {
	return strconv.FormatInt(int64(max(1, math.Ceil(wait.Seconds()))), 10)
}

// JSON returns the status as JSON in one line.
func JSON(st *status.Status) []byte {
	b, err := protojson.Marshal(st.Proto())
	if err == nil {
		return oneLine(b)
	}
	// A detail of a kind that this build does not know: name it instead of hiding it.
	bare := proto.CloneOf(st.Proto())
	for _, d := range bare.GetDetails() {
		bare.Message += fmt.Sprintf(" (with %s)", d.GetTypeUrl())
	}
	bare.Details = nil
	bare.Message = strings.ToValidUTF8(bare.GetMessage(), "\uFFFD")
	if b, err = protojson.Marshal(bare); err != nil { // a number and valid text cannot fail
		return []byte(`{"code":13,"message":"the error cannot be written"}`)
	}
	return oneLine(b)
}

func oneLine(b []byte) []byte {
	if line, err := jsontext.AppendLine(nil, b); err == nil {
		return line
	}
	return b
}
