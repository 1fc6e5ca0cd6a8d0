// Serves the queue of an environment with Anthropic's official worker.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.SERVER + "/anthropic", apiKey: "none" });
const worker = client.beta.environments.work.worker({
  environmentId: process.env.ENVIRONMENT_ID,
  environmentKey: process.env.ENVIRONMENT_KEY,
  workdir: process.env.WORKDIR,
});
await worker.run();
