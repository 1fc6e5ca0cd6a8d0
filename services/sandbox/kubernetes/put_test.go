package kubernetes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/kubernetes/internal/apitest"
)

func TestPodsSeeTheCertificatesOfTheirTime(t *testing.T) {
	needKubelet(t)
	s := apitest.New(t, apitest.Options{Volume: volume})
	o := options(t, s)
	o.Trust = filepath.Join(t.TempDir(), "certificates.pem")
	write := func(text string) {
		if err := os.WriteFile(o.Trust, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	r := newRunner(t, o)
	for _, text := range []string{"first", "renewed"} {
		write(text)
		wantFine(t, r, command(t, "true"))
		if got, err := os.ReadFile(filepath.Join(volume, ".trust", "certificates.pem")); string(got) != text {
			t.Errorf("the volume has %q (%v), and the service %q", got, err, text)
		}
	}
}
