// Uses the component of the page of the clients as a person does. Prints KILL where the test kills the server.
import { createInterface } from "node:readline";
import { Window } from "happy-dom";
const window = new Window({ url: "http://127.0.0.1/" });
globalThis.window = window;
globalThis.document = window.document;
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
const { createElement } = await import("react");
const { render, waitFor, act, fireEvent } = await import("@testing-library/react");
const { Chat, client } = await import("./chat.mjs");

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const killed = async () => { console.log("KILL"); await input.next(); };
const until = (what) => waitFor(() => { const it = what(); if (!it) throw new Error(`not yet: ${document.body.innerHTML}`); return it; }, { timeout: 60000, interval: 20 });
const button = (text) => [...document.querySelectorAll("button")].find((b) => b.textContent.startsWith(text));
const lastTurn = () => [...document.querySelectorAll("article")].at(-1);
const words = () => [...(lastTurn()?.children ?? [])].map((c) => c.textContent).join(" ");
const say = async (text) => {
  const field = document.querySelector("input");
  field.value = text;
  await act(async () => { fireEvent.submit(document.querySelector("form")); });
};

const session = (await client.createSession("coder")).name;
const page = render(createElement(Chat, { session }));
await say("hello");
console.log("asked:", (await until(() => button("Allow"))).textContent);
await act(async () => { fireEvent.click(button("Allow")); });
await until(() => words().endsWith("not.") && !button("Stop"));
console.log("approved:", words());

await say("slow");
await until(() => words().includes("three"));
console.log("in the middle:", words().split(" ").slice(0, 3).join(" "));
const restarted = killed();
console.log("disconnected:", (await until(() => document.querySelector("[role=status]"))) !== null);
await restarted;
await until(() => words().endsWith("ten") && !button("Stop") && !document.querySelector("[role=status]"));
console.log("after the kill:", words());

await say("long");
await until(() => words().includes("word") && button("Stop"));
await act(async () => { fireEvent.click(button("Stop")); });
await until(() => !button("Stop"));
console.log("stopped:", document.querySelector("[role=alert]")?.textContent ?? "stopped");

await say(" ");
console.log("mistake:", (await until(() => document.querySelector("[role=alert]"))).textContent.match(/\btext\b/)?.[0]);
page.unmount();
console.log("unmounted:", document.body.textContent === "");
await window.happyDOM.close();
process.exit(0);
