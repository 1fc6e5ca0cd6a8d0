package main

const frames = "Server-sent events. Each event has its sequence number as `id:`, its name as `event:` (see EventName) and itself, " +
	"as JSON of fairlead.session.v1.Event in one line, as `data:`. Comments are heartbeats (`: ping`) and progress (`: progress SEQ`). " +
	"A frame with `event: stream.error` and a google.rpc.Status as `data:` says why the stream breaks off. " +
	"Reconnecting with the last id as `Last-Event-ID` loses nothing and repeats nothing."

// addStream documents a stream as it is on the wire.
func addStream(op object, s stream) {
	response := op["responses"].(object)["200"].(object)
	content := response["content"].(object)
	// A schema of a line would make clients that are generated read the whole answer as one line.
	lines := object{"schema": object{
		"type": "string", "description": "Lines of JSON: each is an object with `result`, a " + s.message + ". The last one may have `error`, a google.rpc.Status, in place of it.",
	}}
	if s.lines {
		response["content"] = object{"application/x-ndjson": lines}
		body := op["requestBody"].(object)["content"].(object)
		body["application/x-ndjson"] = object{"schema": object{"type": "string", "description": "Lines of JSON: each is a request as in the type application/json."}}
		return
	}
	content["text/event-stream"] = object{
		"schema": object{"type": "string", "description": frames},
		"example": "id: 7\nevent: text.delta\n" +
			`data: {"firstSeq":"6","seq":"7","time":"2026-11-21T10:00:00Z","turn":"sessions/s/turns/t","step":1,"textDelta":{"text":"Hello"}}` + "\n\n",
	}
	delete(content, "application/json")
	content["application/x-ndjson"] = lines
	addResumption(op)
}

func addResumption(op object) {
	seq := object{"type": "string", "pattern": "^[0-9]{1,19}$"}
	addParameter(op, object{
		"name": "Last-Event-ID", "in": "header", "schema": seq,
		"description": "Shows only what comes after this sequence number. It beats `after_seq`; streams of SSE only.",
	})
	for _, p := range parameters(op) {
		if p["name"] == "afterSeq" {
			p["schema"] = seq
			return
		}
	}
	addParameter(op, object{
		"name": "afterSeq", "in": "query", "schema": seq,
		"description": "Shows only what comes after this sequence number.",
	})
}
