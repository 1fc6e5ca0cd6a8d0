package telemetry_test

import (
	"bytes"
	"io"
	stdlog "log" //nolint:depguard // as libraries do
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// setUp has the package log write where telemetry does, until the test ends.
func setUp(t *testing.T, w io.Writer) {
	t.Helper()
	before, flags := stdlog.Writer(), stdlog.Flags()
	t.Cleanup(func() { stdlog.SetOutput(before); stdlog.SetFlags(flags) })
	stdlog.SetOutput(w)
	tel, err := telemetry.Setup(t.Context(), "svc", "v1", telemetry.DefaultConfig(), w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(t.Context()) })
}

// A host that answers more than it was asked is quoted by the client of HTTP, at length.
func TestHostsCannotWriteIntoTheLog(t *testing.T) {
	var out bytes.Buffer
	setUp(t, &out)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"+strings.Repeat("junk", 500))
		_, _ = c.Read(make([]byte, 1000)) // until the client has had enough, and said so
		_ = c.Close()
	}()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	<-seen
	_ = l.Close()
	if strings.Contains(out.String(), "junk") {
		t.Errorf("the log has %.200q", out.String())
	}
}

func TestWhatLibrariesWriteIsOfTheLogsForm(t *testing.T) {
	var out bytes.Buffer
	setUp(t, &out)
	stdlog.Print("something\nis wrong")
	if want := `"level":"WARN","msg":"something\nis wrong","service":"svc"}` + "\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}
