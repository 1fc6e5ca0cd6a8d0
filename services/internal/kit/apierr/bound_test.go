package apierr_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestAnErrorIsSmallWhateverTheRequestHad(t *testing.T) {
	long := strings.Repeat("\x01", 1<<20) // JSON writes six bytes for each
	var opts []apierr.Option
	for i := range 100_000 {
		opts = append(opts, apierr.Field(fmt.Sprint("items", i), "is wrong"))
	}
	opts = append(opts, apierr.Metadata(map[string]string{"a": long}), apierr.Resource("Session", long, long), apierr.Quota(long, long), apierr.Precondition("STATE", long, long))
	for name, opts := range map[string][]apierr.Option{
		"many violations":         opts,
		"violations of long text": {apierr.Field(long, long), apierr.Field(long, long), apierr.Field(long, long), apierr.Field(long, long), apierr.Field(long, long), apierr.Field(long, long), apierr.Field(long, long), apierr.Field(long, long), apierr.Field(long, long), apierr.Field(long, long)},
	} {
		err := apierr.New(codes.InvalidArgument, "d", "R", long, opts...)
		b, failed := protojson.Marshal(status.Convert(err).Proto())
		if failed != nil || len(b) > 64<<10 {
			t.Errorf("%s: %d bytes, %v", name, len(b), failed)
		}
		bad, _ := apierr.Detail[*errdetails.BadRequest](err)
		if n := len(bad.GetFieldViolations()); n == 0 || n > apierr.MaxViolations {
			t.Errorf("%s: %d violations", name, n)
		}
	}
	cut := apierr.Message(apierr.New(codes.Aborted, "d", "R", strings.Repeat("€", 1000)))
	if !strings.HasSuffix(cut, "€…") || strings.ContainsRune(cut, '\uFFFD') || len(cut) > 2010 {
		t.Errorf("a long message became %d bytes: …%q", len(cut), cut[len(cut)-10:])
	}
}
