package main

func fileAnswer(description string) object {
	return answer(description, object{
		"application/json": object{"schema": object{"$ref": "#/components/schemas/fairlead.session.v1.File"}},
	})
}

func fileParameter() object {
	return object{
		"name": "file", "in": "path", "required": true, "schema": object{"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"},
		"description": "The last part of the resource name `files/{file}`.",
	}
}

func uploadOperation() object {
	op := operation("FileService_AppendFile", "UploadFile makes the file of a form a file of the user.", fileAnswer("The file."))
	op["requestBody"] = object{
		"required": true, "description": "The form: the fields `sha256` and `ttl`, if any, and then the file.",
		"content": object{"multipart/form-data": object{"schema": object{"type": "object", "properties": object{
			"sha256": object{"type": "string", "pattern": "^[0-9a-f]{64}$"}, "ttl": object{"type": "string", "example": "3600s"},
			"file": object{"type": "string", "format": "binary"},
		}}}},
	}
	addIdempotencyKey(op)
	return op
}

func contentOperation() object {
	op := operation("FileService_ReadFile",
		"ReadFile answers with a file that is READY. It is always an attachment, so that no browser shows it as a page.",
		answer("The file.", anyFile()), fileParameter(),
		header("Range", "The part of the file, as in RFC 9110; at most 16 ranges."),
		header("If-None-Match", "Answers with 304 if the file's ETag, its SHA-256, is this one."))
	responses, _ := op["responses"].(object)
	responses["206"] = answer("The parts of the file.", anyFile())
	responses["304"] = object{"description": "The client has this file."}
	return op
}

// tus is an operation of the protocol of resumable uploads, with an answer without content.
func tus(id, summary, code, description string, parameters ...any) object {
	op := operation("FileService_"+id, summary, object{}, append(parameters, header("Tus-Resumable", "`1.0.0`."))...)
	responses, _ := op["responses"].(object)
	delete(responses, "200")
	responses[code] = object{"description": description}
	return op
}

func beginUploadOperation() object {
	op := tus("BeginUpload", "BeginUpload begins a resumable upload (tus 1.0).", "201", "Location has the upload.",
		header("Upload-Length", "The size of the file, in bytes."),
		header("Upload-Metadata", "`filename`, `filetype`, `sha256` and `ttl`, with values in Base64."))
	return op
}

func lookUploadOperation() object {
	return tus("LookUpload", "LookUpload answers from where an upload goes on (tus 1.0).", "200", "Upload-Offset has the offset.", fileParameter())
}

func continueUploadOperation() object {
	op := tus("ContinueUpload", "ContinueUpload adds the body to an upload (tus 1.0). With its last byte the file `files/{file}` is READY.", "204", "Upload-Offset has the offset after it.", fileParameter(),
		header("Upload-Offset", "The offset of the body in the file."))
	op["requestBody"] = object{"required": true, "description": "More of the file.", "content": object{"application/offset+octet-stream": archive}}
	return op
}

func endUploadOperation() object {
	return tus("EndUpload", "EndUpload deletes an upload or its file (tus 1.0).", "204", "It is gone.", fileParameter())
}
