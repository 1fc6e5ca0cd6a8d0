package diskspace

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestAFolderIsFullByBytesOrInodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		free  map[string]Free
		full  string // what the error names; empty for none
		tight bool
	}{
		{"there is plenty", map[string]Free{"a": {Bytes: 1000, Inodes: 1000}, "b": {Bytes: 1000, Inodes: 1000}}, "", false},
		{"less than twice the floor", map[string]Free{"a": {Bytes: 150, Inodes: 1000}, "b": {Bytes: 1000, Inodes: 1000}}, "", true},
		{"bytes are short", map[string]Free{"a": {Bytes: 99, Inodes: 1000}, "b": {Bytes: 1000, Inodes: 1000}}, "free-bytes", true},
		{"inodes are short in the second", map[string]Free{"a": {Bytes: 1000, Inodes: 1000}, "b": {Bytes: 1000, Inodes: 9}}, "free-inodes", true},
		{"inodes are made as needed", map[string]Free{"a": {Bytes: 1000, AnyInodes: true}, "b": {Bytes: 1000, AnyInodes: true}}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := New(100, 10, Folder{"first", "a"}, Folder{"second", "b"})
			w.look = func(f string) (Free, error) { return tt.free[f], nil }
			err := w.Check()
			if tt.full == "" && err != nil || tt.full != "" && (!errors.Is(err, ErrFull) || !strings.Contains(err.Error(), tt.full)) {
				t.Errorf("Check: %v", err)
			}
			if w.Tight() != tt.tight {
				t.Errorf("Tight is %v", !tt.tight)
			}
		})
	}
}

func TestTheKernelIsAskedEachTime(t *testing.T) {
	t.Parallel()
	w := New(1, 1, Folder{"data directory", t.TempDir()})
	if err := w.Check(); err != nil {
		t.Error(err)
	}
	w.bytes = 1 << 62
	if err := w.Check(); !errors.Is(err, ErrFull) {
		t.Errorf("with a floor above any disk: %v", err)
	}
	w.bytes = 1
	if err := w.Check(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := New(1, 1, Folder{"data directory", "/does/not/exist"}).Check(); err == nil || errors.Is(err, ErrFull) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestTheLeastOfAllFoldersIsFree(t *testing.T) {
	t.Parallel()
	free := map[string]Free{"a": {Bytes: 7, Inodes: 70}, "b": {Bytes: 9, Inodes: 50}}
	w := New(100, 10, Folder{"first", "a"}, Folder{"second", "b"})
	w.look = func(f string) (Free, error) { return free[f], nil }
	if bytes, inodes := w.Free(); bytes != 7 || inodes != 50 {
		t.Errorf("%d bytes and %d inodes", bytes, inodes)
	}
}

func TestWhatIsFreeIsMeasured(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	w := New(100, 10, Folder{"data directory", "a"})
	w.look = func(string) (Free, error) { return Free{Bytes: 7, Inodes: 70}, nil }
	if err := w.Observe(provider.Meter("test")); err != nil {
		t.Fatal(err)
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &got); err != nil {
		t.Fatal(err)
	}
	values := map[string]int64{}
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			values[m.Name] = m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
		}
	}
	if values["fairlead.sandbox.disk.free"] != 7 || values["fairlead.sandbox.disk.free_inodes"] != 70 || values["fairlead.sandbox.disk.full"] != 1 {
		t.Errorf("%v", values)
	}
}
