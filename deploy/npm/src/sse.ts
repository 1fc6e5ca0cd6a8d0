/** A frame of a stream of server-sent events. A comment is a frame without data. */
export interface Frame {
  event: string;
  data: string;
}

/** The frames of a body. A frame that the end cuts off is dropped. */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        yield frame(rest.slice(0, end));
        rest = rest.slice(end + 2);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function frame(text: string): Frame {
  const f: Frame = { event: "message", data: "" };
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event: ")) f.event = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  f.data = data.join("\n");
  return f;
}
