package main

func fireOperation() object {
	op := operation("TriggerService_FireTrigger",
		"FireTrigger takes a delivery and makes a turn of it, once. It needs no credential: the delivery is signed with the trigger's secret, or has it in the address.",
		answer("What the delivery began.", object{
			"application/json": object{"schema": object{"type": "object", "properties": object{
				"turn": object{"type": "string", "description": "The turn, as `sessions/{session}/turns/{turn}`. A repeated delivery gets that of the first one."},
			}}},
		}),
		object{
			"name": "trigger", "in": "path", "required": true, "schema": object{"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"},
			"description": "The last part of the resource name `triggers/{trigger}`.",
		},
		object{"name": "secret", "in": "query", "schema": object{"type": "string"}, "description": "The secret, of a trigger whose proof is its address."},
		header("webhook-id", "What names the delivery, as the Standard Webhooks specification says; a repeated one makes no second turn."),
		header("webhook-timestamp", "When it was sent, in seconds; at most five minutes ago."),
		header("webhook-signature", "Its signatures."),
		header("X-GitHub-Delivery", "What names GitHub's delivery."),
		header("X-Hub-Signature-256", "GitHub's signature."),
		header("X-Fairlead-Delivery", "What names another delivery; without a name its SHA-256 does."))
	op["requestBody"] = object{"description": "The content, at most 256 KiB of UTF-8.", "content": object{
		"application/json": object{"schema": object{}}, "text/plain": object{"schema": object{"type": "string"}},
		"application/x-www-form-urlencoded": object{"schema": object{"type": "object"}}, "*/*": object{"schema": object{"type": "string"}},
	}}
	return op
}
