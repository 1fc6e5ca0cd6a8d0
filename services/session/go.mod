module github.com/fairlead/fairlead/services/session

go 1.26.0

require (
	github.com/anthropics/anthropic-sdk-go v1.84.0
	github.com/fairlead/fairlead/gen v0.0.0
	github.com/fairlead/fairlead/services/internal/kit v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/pressly/goose/v3 v3.28.0
	github.com/sashabaranov/go-openai v1.43.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	go.uber.org/goleak v1.3.0
	go.yaml.in/yaml/v3 v3.0.5
	google.golang.org/genproto/googleapis/api v0.0.0-20261019180522-ce908d29299b
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	modernc.org/sqlite v1.60.1
	pgregory.net/rapid v1.3.0
)

replace github.com/fairlead/fairlead/gen => ../../gen

replace github.com/fairlead/fairlead/services/internal/kit => ../internal/kit
