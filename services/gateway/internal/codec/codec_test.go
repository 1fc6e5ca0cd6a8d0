package codec

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

func TestABodyThatBreaksOffIsMalformed(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(`{"text":"x"}`))))
	b := NewBody(httptest.NewRecorder(), r, 100, time.Minute)
	err := b.Decode(&sessionv1.CreateTurnRequest{})
	if apierr.Reason(err) != problem.ReasonBodyMalformed || b.Err() != err { //nolint:errorlint // the very same
		t.Errorf("Decode: %v; Err: %v", err, b.Err())
	}
}

func TestAnEmptyBodyIsTheEnd(t *testing.T) {
	for _, body := range []string{"", " \r\n\t"} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		b := NewBody(httptest.NewRecorder(), r, 100, time.Minute)
		if err := b.Decode(&sessionv1.CreateTurnRequest{}); !errors.Is(err, io.EOF) || b.Err() != nil {
			t.Errorf("%q: Decode: %v; Err: %v", body, err, b.Err())
		}
	}
}

func TestABodyThatIsTooSlowTimesOut(t *testing.T) {
	got := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := NewBody(w, r, 100, 20*time.Millisecond).Decode(&sessionv1.CreateTurnRequest{})
		got <- err
		problem.Write(w, err)
	}))
	defer srv.Close()
	body, in := io.Pipe()
	defer func() { _ = in.Close() }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := problem.Status(<-got).Err(); apierr.Reason(err) != problem.ReasonBodyTimeout || resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("Decode: %v; status %d", err, resp.StatusCode)
	}
}

func TestAnErrorOfAnInputSaysWhichOne(t *testing.T) {
	err := UnmarshalInput(7, []byte(`{"opne":{}}`), &sessionv1.ConverseRequest{})
	if msg := apierr.Message(err); !strings.Contains(msg, `input 7: line 1, column 2: unknown field "opne"`) {
		t.Errorf("message %q", msg)
	}
}

func TestPreferTakesTheBestThatIsNamed(t *testing.T) {
	for _, c := range []struct{ accept, want string }{
		{"", "fallback"}, {"*/*", "fallback"}, {"a/*", "fallback"}, {"c/c", "fallback"},
		{"a/a", "a/a"}, {"b/b", "b/b"}, {"b/b, a/a", "a/a"}, {"a/a;q=0.5,b/b;q=0.6", "b/b"},
		{"a/a;q=0", "fallback"}, {"a/a;q=2, b/b;q=0.1", "b/b"}, {"a/a;q=x", "fallback"}, {"A/A", "a/a"}, {"a/a;charset=utf-8", "a/a"},
		{"a/a;q=NaN", "fallback"},
	} {
		if got := Prefer([]string{c.accept}, "fallback", "a/a", "b/b"); got != c.want {
			t.Errorf("%q: %q, want %q", c.accept, got, c.want)
		}
	}
	if got := Prefer([]string{"c/c", "b/b"}, "fallback", "a/a", "b/b"); got != "b/b" {
		t.Errorf("in the second line: %q", got)
	}
}

func TestOnlyJSONIsABody(t *testing.T) {
	for ct, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON": true, "application/merge-patch+json": true,
		"application/x-www-form-urlencoded": true, "": false, "text/plain": false, "text/json": false, "application/jsonx": false, "application/json, text/plain": false, ";": false,
	} {
		if err := CheckContentType(http.Header{"Content-Type": {ct}}, ContentType); (err == nil) != ok {
			t.Errorf("%q: %v", ct, err)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"text":"hi"}`, `{"text":"hi","content":[{"text":{"text":"x"}},{"image":{"mediaType":"image/png","data":"AAAA"}}]}`,
		`{"limits":{"maxSteps":"5","maxWallTime":"1.5s"}}`, `{"clientTools":[{"name":"a","inputSchemaJson":"{\"type\":[\"object\",null,1e9]}"}]}`,
		`{"afterSeq":"-9223372036854775808"}`, `{"onActive":"ON_ACTIVE_QUEUE"}`, `[`, "{\"text\":\"\xff\"}", `{"text":"\ud800"}`, `{"a":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &sessionv1.RunTurnRequest{}
		if err := Unmarshal(data, m); err != nil {
			st := status.Convert(err)
			if st.Code() != codes.InvalidArgument || apierr.Reason(err) != problem.ReasonBodyMalformed || len(problem.JSON(st)) > 8<<10 {
				t.Fatalf("error %v", err)
			}
			return
		}
		out, err := jsontext.AppendMessage([]byte("x"), m)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if strings.ContainsAny(string(out), "\r\n\u0085\u2028\u2029") {
			t.Fatalf("more than one line: %q", out)
		}
		again := &sessionv1.RunTurnRequest{}
		if err := Unmarshal(out[1:], again); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
		if diff := cmp.Diff(m, again, protocmp.Transform()); diff != "" {
			t.Fatalf("another message came back (-want +got):\n%s", diff)
		}
	})
}

func FuzzResumePoint(f *testing.F) {
	for _, s := range []string{"", "0", "1", "-1", "+1", "007", "9223372036854775807", "9223372036854775808", "1e3", " 1", "1 ", "٣", "0x1", "1_0"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, s string, inHeader bool) {
		h, q := http.Header{}, url.Values{}
		if inHeader {
			h.Set("Last-Event-ID", s)
		} else {
			q.Set("after_seq", s)
		}
		seq, ok, err := ResumePoint(h, q)
		digits := s != "" && strings.Trim(s, "0123456789") == ""
		switch {
		case err != nil:
			if status.Code(err) != codes.InvalidArgument || (inHeader && s == "") || (digits && len(s) < 19) {
				t.Fatalf("%q: %v", s, err)
			}
		case ok != (s != ""), seq < 0, ok && !digits, !ok && seq != 0:
			t.Fatalf("%q: %d, %t", s, seq, ok)
		}
	})
}

func FuzzCheckQuery(f *testing.F) {
	desc := (&sessionv1.ListEventsRequest{}).ProtoReflect().Descriptor().Fields()
	fields := map[string]protoreflect.FieldDescriptor{}
	for i := range desc.Len() {
		fields[string(desc.Get(i).Name())] = desc.Get(i)
	}
	for _, s := range []string{"", "after_seq=1", "after_seq=1&after_seq=2", "page_size=999999999999", "x=1", "%zz", "a;b", "parent[x]=y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		err := CheckQuery(raw, fields)
		values, parseErr := url.ParseQuery(raw)
		if parseErr != nil && err == nil {
			t.Fatalf("%q was taken", raw)
		}
		for name, all := range values {
			if _, known := fields[name]; err == nil && (!known || len(all) != 1) {
				t.Fatalf("%q was taken", raw)
			}
		}
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
