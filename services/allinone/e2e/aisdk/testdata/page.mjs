
// Uses the hook of the example above in a page, loads the page again in the middle of a message, and prints what a person sees.
import { Window } from "happy-dom";
const window = new Window({ url: "http://127.0.0.1/" });
globalThis.window = window;
globalThis.document = window.document;
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
const { renderHook, waitFor, act } = await import("@testing-library/react");
const options = { timeout: 20000, interval: 20 };
const words = (m) => m.parts.filter((p) => p.type === "text").map((p) => p.text).join("");

const first = renderHook(() => useAgent("page", []));
await act(async () => { first.result.current.sendMessage({ text: "ask" }); });
const call = () => first.result.current.messages.at(-1).parts.find((p) => p.type === "dynamic-tool");
await waitFor(() => { if (call()?.state !== "approval-requested" || first.result.current.status !== "ready") throw new Error("not asked"); }, options);
console.log("asked:", call().state);
await act(async () => { first.result.current.addToolApprovalResponse({ id: call().approval.id, approved: true }); });
await waitFor(() => { if (!words(first.result.current.messages.at(-1)).includes("Written") || first.result.current.status !== "ready") throw new Error("not done"); }, options);
console.log("approved:", call().state, first.result.current.messages.at(-1).parts.findLast((p) => p.type === "text").text);
await act(async () => { first.result.current.sendMessage({ text: "slow" }); });
await waitFor(() => { if (!words(first.result.current.messages.at(-1)).includes("three")) throw new Error("not begun"); }, options);
console.log("in the middle:", first.result.current.status);
await act(async () => { first.result.current.stop(); });
first.unmount();

const history = await loadMessages("page");
const second = renderHook(() => useAgent("page", history));
await waitFor(() => { if (!words(second.result.current.messages.at(-1)).endsWith("ten") || second.result.current.status !== "ready") throw new Error("not done"); }, options);
console.log("loaded again:", words(second.result.current.messages.at(-1)));
console.log("messages:", second.result.current.messages.map((m) => m.role).join(" "));
second.unmount();
process.exit(0);
