module github.com/fairlead/fairlead/services/sandbox

go 1.26.0

require (
	github.com/bmatcuk/doublestar/v4 v4.10.4
	github.com/creack/pty v1.1.24
	github.com/fairlead/fairlead/gen v0.0.0
	github.com/fairlead/fairlead/services/internal/kit v0.0.0
	github.com/google/go-cmp v0.7.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	go.uber.org/goleak v1.3.0
	google.golang.org/genproto/googleapis/api v0.0.0-20261019180522-ce908d29299b
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require golang.org/x/sys v0.48.0 // indirect

replace github.com/fairlead/fairlead/gen => ../../gen

replace github.com/fairlead/fairlead/services/internal/kit => ../internal/kit
