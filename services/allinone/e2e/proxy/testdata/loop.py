"""Runs a loop of tools with an official client: loop.py messages|chat|responses MODEL."""

import json, os, sys
import anthropic, openai

wire, model = sys.argv[1:]
server, key = os.environ["SERVER"], os.environ["FAIRLEAD_API_KEY"]
question = "What is the weather?"
schema = {"type": "object", "properties": {"city": {"type": "string"}}}


def weather(city):
    return f"21 degrees in {city}"


class Messages:
    client = anthropic.Anthropic(base_url=server + "/anthropic", api_key=key)
    errors = anthropic
    tools = [{"name": "weather", "description": "tells the weather", "input_schema": schema}]

    def start(self, text):
        return [{"role": "user", "content": text}]

    def stream(self, talk):
        text = ""
        with self.client.messages.stream(model=model, max_tokens=2000, messages=talk, tools=self.tools) as stream:
            for piece in stream.text_stream:
                text += piece
            message = stream.get_final_message()
        assert message.stop_reason == ("tool_use" if len(talk) == 1 else "end_turn"), message.stop_reason
        calls = [(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"]
        u = message.usage
        return text, calls, [{"role": "assistant", "content": message.content}], (u.input_tokens + u.cache_read_input_tokens, u.output_tokens, u.cache_read_input_tokens)

    def results(self, results):
        return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": r} for i, r in results]}]

    def whole(self, talk):
        message = self.client.messages.create(model=model, max_tokens=2000, messages=talk, tools=self.tools)
        return "".join(b.text for b in message.content if b.type == "text")

    def bad(self):
        self.client.messages.create(model=model, max_tokens=0, messages=[{"role": "user", "content": ""}])

    def missing(self):
        self.client.messages.create(model="none:none", max_tokens=1, messages=self.start("x"))


class Chat:
    client = openai.OpenAI(base_url=server + "/openai/v1", api_key=key)
    errors = openai
    tools = [{"type": "function", "function": {"name": "weather", "description": "tells the weather", "parameters": schema}}]

    def start(self, text):
        return [{"role": "user", "content": text}]

    def stream(self, talk):
        text = ""
        with self.client.chat.completions.stream(model=model, messages=talk, tools=self.tools, stream_options={"include_usage": True}) as stream:
            for event in stream:
                if event.type == "content.delta":
                    text += event.delta
            answer = stream.get_final_completion()
        choice, u = answer.choices[0], answer.usage
        assert choice.finish_reason == ("tool_calls" if len(talk) == 1 else "stop"), choice.finish_reason
        calls = [(c.id, c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls or []]
        said = {"role": "assistant", "content": choice.message.content}
        if calls:
            said["tool_calls"] = [{"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]
        return text, calls, [said], (u.prompt_tokens, u.completion_tokens, u.prompt_tokens_details.cached_tokens)

    def results(self, results):
        return [{"role": "tool", "tool_call_id": i, "content": r} for i, r in results]

    def whole(self, talk):
        return self.client.chat.completions.create(model=model, messages=talk, tools=self.tools).choices[0].message.content

    def bad(self):
        self.client.chat.completions.create(model=model, messages=[])

    def missing(self):
        self.client.chat.completions.create(model="none:none", messages=self.start("x"))


class Responses(Chat):
    tools = [{"type": "function", "name": "weather", "description": "tells the weather", "parameters": schema, "strict": False}]

    def stream(self, talk):
        text = ""
        with self.client.responses.stream(model=model, input=talk, tools=self.tools, store=False) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    text += event.delta
            answer = stream.get_final_response()
        assert answer.status == "completed", answer.status
        calls = [(o.call_id, o.name, json.loads(o.arguments)) for o in answer.output if o.type == "function_call"]
        said = []
        for o in answer.output:
            if o.type == "function_call":
                said.append({"type": "function_call", "call_id": o.call_id, "name": o.name, "arguments": o.arguments})
            elif o.type == "message":
                said.append({"role": "assistant", "content": [{"type": "output_text", "text": c.text} for c in o.content]})
        u = answer.usage
        return text, calls, said, (u.input_tokens, u.output_tokens, u.input_tokens_details.cached_tokens)

    def results(self, results):
        return [{"type": "function_call_output", "call_id": i, "output": r} for i, r in results]

    def whole(self, talk):
        return self.client.responses.create(model=model, input=talk, tools=self.tools).output_text

    def bad(self):
        self.client.responses.create(model=model, input=[])

    def missing(self):
        self.client.responses.create(model="none:none", input="x")


def status(call):
    try:
        call()
    except (anthropic.APIStatusError, openai.APIStatusError) as e:
        return e.status_code
    return "no error"


a = {"messages": Messages, "chat": Chat, "responses": Responses}[wire]()
talk = a.start(question)
text, calls, said, _ = a.stream(talk)
print("streamed:", text + " ".join(f"{name}({arguments['city']})" for _, name, arguments in calls))
talk = talk + said + a.results([(i, weather(arguments["city"])) for i, _, arguments in calls])
text, _, _, usage = a.stream(talk)
print("answered:", text)
print("usage:", *usage)
print("whole:", a.whole(talk))
print("retried:", a.whole(a.start("How is the stock exchange?")).strip())
print("not found:", status(a.missing))
print("refused:", status(a.bad))
names = {m.id for m in a.client.models.list()}
print("models:", str({"anthropic:claude-sonnet-5-5", "openai:gpt-5.6-terra"} <= names).lower())
