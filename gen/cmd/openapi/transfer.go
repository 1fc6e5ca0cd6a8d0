package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Media types of a session's file. OpenAPI 3.1 needs no schema for binary content, but generators of clients do.
var (
	jsonl = object{"schema": object{
		"type": "string", "description": "JSONL: the transcript, one JSON object in a line.",
	}}
	archive = object{"schema": object{"type": "string", "format": "binary"}}
)

// addTransfers documents the operations whose body or answer is a file.
// Their RPCs have no HTTP rule, because grpc-gateway knows no files; the gateway
// serves them itself.
func addTransfers(paths object) error {
	for path, item := range map[string]object{
		"/v1/sessions/{session}:export":        {"get": exportOperation()},
		"/v1/sessions:import":                  {"post": importOperation()},
		"/v1/sessions/{session}/files/{path}":  {"get": readFileOperation(), "put": writeFileOperation(), "delete": deleteFileOperation()},
		"/v1/sessions/{session}/files:archive": {"get": archiveOperation()},
		"/v1/sessions/{session}/files:unpack":  {"post": unpackOperation()},
		"/v1/files:upload":                     {"post": uploadOperation()},
		"/v1/files/{file}:content":             {"get": contentOperation()},
		"/v1/triggers/{trigger}:fire":          {"post": fireOperation()},
		"/v1/uploads":                          {"post": beginUploadOperation()},
		"/v1/uploads/{file}":                   {"head": lookUploadOperation(), "patch": continueUploadOperation(), "delete": endUploadOperation()},
	} {
		if paths[path] != nil {
			return fmt.Errorf("the path %s comes from the proto now: leave it out of addTransfers", path)
		}
		paths[path] = item
	}
	return nil
}

func exportOperation() object {
	file := answer("The file, named by Content-Disposition. An answer that breaks off is cut: its connection ends with an error.", object{
		"application/jsonl": jsonl, "application/gzip": archive,
	})
	file["headers"] = object{"Content-Disposition": object{
		"description": "The file's name: `attachment; filename=\"...\"`.", "schema": object{"type": "string"},
	}}
	return operation("SessionService_ExportSession",
		"ExportSession answers with a session as a file: its transcript (`application/jsonl`), or an archive of the transcript and the workspace's files (`application/gzip`).",
		file,
		sessionParameter(),
		object{
			"name": "format", "in": "query", "schema": object{"type": "string", "enum": []any{"jsonl", "archive"}, "default": "jsonl"},
			"description": "What to export: `jsonl`, the transcript alone, or `archive`, a gzipped tar of the transcript and the files.",
		})
}

func sessionParameter() object {
	pattern := pathPattern((&sessionv1.ExportSessionRequest{}).ProtoReflect().Descriptor(), "session")
	return object{
		"name": "session", "in": "path", "required": true, "schema": object{"type": "string", "pattern": pattern},
		"description": "The last part of the resource name `sessions/{session}`.",
	}
}

func importOperation() object {
	open := (&sessionv1.ImportOpen{}).ProtoReflect().Descriptor().Fields()
	op := operation("SessionService_ImportSession",
		"ImportSession makes a session from an export. A file that is not an export, or that was cut off or changed so that it contradicts itself, is refused and makes nothing.",
		answer("ImportSessionResponse brings the session.", object{
			"application/json": object{"schema": object{"$ref": "#/components/schemas/fairlead.session.v1.Session"}},
		}),
		openParameter(open.ByName("session_id"), "The new session's id; made by the server when empty."),
		openParameter(open.ByName("agent"), "The agent to go on with; empty: the agent of the export, which must exist here."))
	op["requestBody"] = object{
		"required": true, "description": "The file, in either format; which one is seen from its content.",
		"content": object{
			"application/jsonl": jsonl, "application/x-ndjson": jsonl,
			"application/gzip": archive, "application/x-gzip": archive, "application/octet-stream": archive,
		},
	}
	addIdempotencyKey(op)
	return op
}

func openParameter(f protoreflect.FieldDescriptor, description string) object {
	schema := object{"type": "string"}
	addRule(schema, rulesOf(f))
	return object{"name": string(f.Name()), "in": "query", "schema": schema, "description": description}
}

func answer(description string, content object) object {
	return object{"description": description, "content": content}
}

// operation is an operation, with the answer to errors that all have.
func operation(id, summary string, ok object, parameters ...any) object {
	service, _, _ := strings.Cut(id, "_")
	return object{
		"operationId": id, "summary": summary, "tags": []any{service}, "parameters": parameters,
		"responses": object{
			"200":     ok,
			"default": answer("An unexpected error response.", object{"application/json": object{"schema": object{"$ref": "#/components/schemas/google.rpc.Status"}}}),
		},
	}
}
