module github.com/fairlead/fairlead/services/gateway

go 1.26.0

require (
	github.com/fairlead/fairlead/gen v0.0.0
	github.com/fairlead/fairlead/services/internal/kit v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.31.0
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.72.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	go.uber.org/goleak v1.3.0
	google.golang.org/genproto/googleapis/api v0.0.0-20261019180522-ce908d29299b
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

replace github.com/fairlead/fairlead/gen => ../../gen

replace github.com/fairlead/fairlead/services/internal/kit => ../internal/kit
