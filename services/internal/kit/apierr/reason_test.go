package apierr_test

import (
	"testing"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// A reason is one of its own service: another service may use the same name.
func TestAReasonBelongsToItsDomain(t *testing.T) {
	err := overTheWire(apierr.Of(codes.NotFound, code.Code_NOT_FOUND, "there is none"))
	if apierr.Reason(err) != "NOT_FOUND" || apierr.ErrorDomain(err) != "google."+apierr.Domain || apierr.Message(err) != "there is none" {
		t.Errorf("made %v: %s of %s", err, apierr.Reason(err), apierr.ErrorDomain(err))
	}
	if !apierr.Is(err, code.Code_NOT_FOUND) || apierr.Is(err, code.Code_ABORTED) {
		t.Error("the reason is another one")
	}
	for _, other := range []error{nil, apierr.New(codes.NotFound, "other."+apierr.Domain, "NOT_FOUND", "there is none")} {
		if apierr.Is(other, code.Code_NOT_FOUND) || apierr.As[code.Code](other) != code.Code_OK {
			t.Errorf("%v has the reason of another domain", other)
		}
	}
}
