// Package openapi carries the description of the REST interface.
package openapi

import _ "embed"

// JSON is the OpenAPI 3.1 document of all public services. It is written by
// `make generate`; nobody may change it at run time.
//
//go:embed fairlead.json
var JSON []byte
