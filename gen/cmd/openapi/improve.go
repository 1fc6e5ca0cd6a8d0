package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	_ "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1" // its messages and services are in the document
)

// object is a JSON object of the document.
type object = map[string]any

const description = `Fairlead runs AI agents: open a session, send a message, and follow the turn.

Names in JSON are lowerCamelCase and those of query parameters snake_case (` + "`?after_seq=`" + `); both are taken in
either form. 64-bit numbers are strings, as in Protocol Buffers' JSON. Fields that have their default value are left
out, and null is the same as left out. Unknown fields and query parameters are refused.

Errors are google.rpc.Status: ` + "`code`, `message` and `details`" + `, of which the google.rpc.ErrorInfo carries
a reason for programs.`

// streams are the operations that answer with a stream, and the message of
// which one line of NDJSON or one event of SSE is made.
var streams = map[string]stream{
	"SessionService_StreamEvents": {message: "fairlead.session.v1.StreamEventsResponse"},
	"SessionService_RunTurn":      {message: "fairlead.session.v1.RunTurnResponse"},
	"SessionToolService_CallTool": {message: "fairlead.session.v1.CallToolResponse"},
	"SessionService_Converse":     {message: "fairlead.session.v1.ConverseResponse", lines: true},
}

type stream struct {
	message string
	lines   bool // NDJSON both ways, no SSE
}

// optionalBody lists the operations whose body may be empty.
var optionalBody = []string{
	"SessionService_CreateSession", "SessionService_InterruptSession", "SessionService_ForkSession", "SessionService_CompactSession",
	"IdentityService_CreateTenant", "IdentityService_CreateUser", "IdentityService_CreateKey",
}

// improve changes the document in place.
func improve(doc object) error {
	doc["info"] = object{
		"title": "Fairlead", "version": "v1", "description": description,
		"license": object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
	}
	doc["servers"] = []any{object{"url": "/", "description": "The server that serves this document"}}
	addSchemas(doc)
	input := inputs()
	paths, ok := doc["paths"].(object)
	if !ok {
		return fmt.Errorf("the merged document has no paths")
	}
	seen := 0
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := paths[path].(object)
		for method, op := range item {
			op := op.(object)
			id := op["operationId"].(string)
			renameParameters(path, op)
			if slices.Contains(optionalBody, id) {
				op["requestBody"].(object)["required"] = false
			}
			if s, ok := streams[id]; ok {
				addStream(op, s)
				seen++
			}
			if input[id] == nil {
				return fmt.Errorf("the operation %s is no RPC that this program knows: import its package", id)
			}
			if method != "get" && !streams[id].lines && input[id].Fields().ByName("request_id") != nil {
				addIdempotencyKey(op)
			}
			addParameterRules(op, input[id])
			if id == "SessionService_ListEvents" {
				op["description"] = "With `Accept: text/event-stream` this address answers as `SessionService_StreamEvents` does."
			}
		}
		delete(paths, path)
		name := renamePath(path)
		if strings.Contains(name, "{}") {
			return fmt.Errorf("the path %s has a collection that this program does not know: add it to the table of singulars", path)
		}
		paths[name] = item
	}
	if seen != len(streams) {
		return fmt.Errorf("%d of %d streaming operations found: bring the table of streams up to date", seen, len(streams))
	}
	if err := addTransfers(paths); err != nil {
		return err
	}
	secure(doc)
	return completeSchemas(doc)
}

// addSchemas says which events there are (the plugin leaves out what only a
// stream refers to otherwise), and adds the validation rules.
func addSchemas(doc object) {
	schemas := doc["components"].(object)["schemas"].(object)
	names := make([]any, 0, len(sessionv1.EventNames))
	for _, n := range sessionv1.EventNames {
		names = append(names, n)
	}
	addRules(schemas)
	flattenOneofs(schemas)
	schemas["EventName"] = object{
		"type": "string", "enum": names,
		"description": "The name of an event: the `event:` of its SSE frame.",
	}
}

// singular maps the collections to the names of their path parameters.
var singular = map[string]string{
	"sessions": "session", "turns": "turn", "agents": "agent", "tools": "tool", "operations": "operation", "profiles": "profile", "grants": "grant",
	"schedules": "schedule", "skills": "skill", "webhooks": "webhook", "checkpoints": "checkpoint", "repositories": "repository", "users": "user", "variables": "variable", "mcpServers": "mcpServer", "mcp": "mcp",
	"tenants": "tenant", "keys": "key",
	"versions": "version", "environments": "environment", "models": "model", "triggers": "trigger", "files": "file", "artifacts": "artifact",
}

// renamePath turns /v1/sessions/{name}/turns/{name_1} into
// /v1/sessions/{session}/turns/{turn}.
func renamePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if old, ok := pathParameter(p); ok {
			parts[i] = strings.Replace(p, old, singular[parts[i-1]], 1)
		}
	}
	return strings.Join(parts, "/")
}

// pathParameter returns the name in a part such as {name}:interrupt.
func pathParameter(part string) (name string, ok bool) {
	if !strings.HasPrefix(part, "{") {
		return "", false
	}
	name, _, ok = strings.Cut(part[1:], "}")
	return name, ok
}

func renameParameters(path string, op object) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		old, ok := pathParameter(p)
		if !ok {
			continue
		}
		name := singular[parts[i-1]]
		for _, q := range parameters(op) {
			if q["in"] == "path" && q["name"] == old {
				q["name"] = name
				q["description"] = fmt.Sprintf("The last part of the resource name `%s/{%s}`.", parts[i-1], name)
			}
		}
	}
}

func parameters(op object) []object {
	list, _ := op["parameters"].([]any)
	out := make([]object, 0, len(list))
	for _, p := range list {
		out = append(out, p.(object))
	}
	return out
}

func addParameter(op object, p object) {
	list, _ := op["parameters"].([]any)
	op["parameters"] = append(list, p)
}

func addIdempotencyKey(op object) {
	addParameter(op, object{
		"name": "Idempotency-Key", "in": "header",
		"description": "The request's idempotency key (`requestId`): repeating the request with it has no second effect. " +
			"The server makes one when there is none. A `requestId` that differs is refused.",
		"schema": object{"type": "string", "pattern": "^[!-~]{0,128}$"},
	})
	op["responses"].(object)["200"].(object)["headers"] = object{
		"Idempotency-Key": object{
			"description": "The request's idempotency key, given or made.",
			"schema":      object{"type": "string"},
		},
	}
}
