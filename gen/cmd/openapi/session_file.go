package main

// sessionFile is the answer that describes a file of a workspace.
func sessionFile(description string) object {
	return answer(description, object{
		"application/json": object{"schema": object{"$ref": "#/components/schemas/fairlead.session.v1.SessionFile"}},
	})
}

func wholePath() object {
	return object{
		"name": "path", "in": "path", "required": true, "schema": object{"type": "string"},
		"description": "The path in the workspace. It may have slashes.",
	}
}

func query(name, description string, schema object) object {
	return object{"name": name, "in": "query", "schema": schema, "description": description}
}

func header(name, description string) object {
	return object{"name": name, "in": "header", "schema": object{"type": "string"}, "description": description}
}

// anyFile is content of any type.
func anyFile() object { return object{"application/octet-stream": archive, "*/*": archive} }

func readFileOperation() object {
	op := operation("SessionFileService_ReadSessionFile",
		"ReadSessionFile answers with a regular file. It is always an attachment, so that no browser shows it as a page.",
		answer("The file.", anyFile()), sessionParameter(), wholePath(),
		header("Range", "The part of the file, as in RFC 9110; at most 16 ranges."),
		header("If-Match", "Answers with 412 if the file's ETag is another one."),
		header("If-None-Match", "Answers with 304 if the file's ETag is this one."),
		header("If-Range", "Answers with the whole file if its ETag is another one."))
	responses, _ := op["responses"].(object)
	responses["206"] = answer("The parts of the file.", anyFile())
	responses["304"] = object{"description": "The file has not changed."}
	return op
}

func writeFileOperation() object {
	op := operation("SessionFileService_WriteSessionFile",
		"WriteSessionFile makes the body a regular file of the workspace, or replaces one, atomically.",
		sessionFile("The file, which was there before."), sessionParameter(), wholePath(),
		query("mode", "The permission bits of a new file, in octal.", object{"type": "string", "default": "644"}),
		header("If-Match", "Writes only if the file's ETag is this one; 412 otherwise."),
		header("If-None-Match", "`*`: writes only if there is no such file; 412 otherwise."))
	op["requestBody"] = object{"required": true, "description": "The data.", "content": anyFile()}
	responses, _ := op["responses"].(object)
	responses["201"] = sessionFile("The new file.")
	addIdempotencyKey(op)
	return op
}

func deleteFileOperation() object {
	op := operation("SessionFileService_DeleteSessionFile", "DeleteSessionFile removes a file or a directory.",
		answer("It is gone.", object{
			"application/json": object{"schema": object{"$ref": "#/components/schemas/fairlead.session.v1.DeleteSessionFileResponse"}},
		}), sessionParameter(), wholePath(),
		query("recursive", "Removes a directory with everything in it.", object{"type": "boolean"}))
	addIdempotencyKey(op)
	return op
}

func archiveOperation() object {
	return operation("SessionFileService_ExportSessionFiles",
		"ExportSessionFiles answers with a directory of the workspace as an archive.",
		answer("The archive. An answer that breaks off is cut: its connection ends with an error.", object{
			"application/gzip": archive, "application/x-tar": archive, "application/zip": archive,
		}), sessionParameter(),
		query("path", "The directory; empty is the workspace.", object{"type": "string"}),
		query("format", "The archive's format.", object{"type": "string", "enum": []any{"tar", "tar.gz", "zip"}, "default": "tar.gz"}))
}

func unpackOperation() object {
	op := operation("SessionFileService_ImportSessionFiles",
		"ImportSessionFiles unpacks the body into a new directory of the workspace, whole or not at all.",
		sessionFile("The new directory."), sessionParameter(),
		object{"name": "path", "in": "query", "required": true, "schema": object{"type": "string"}, "description": "The new directory."},
		query("format", "The archive's format. It follows from Content-Type by default.", object{"type": "string", "enum": []any{"tar", "tar.gz", "zip"}}))
	op["requestBody"] = object{
		"required": true, "description": "The archive.",
		"content": object{"application/gzip": archive, "application/x-tar": archive, "application/zip": archive, "application/octet-stream": archive},
	}
	addIdempotencyKey(op)
	return op
}
