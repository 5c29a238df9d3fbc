/** For somebody who has no learner yet. */

import { key } from "./api.js";

/** Two commands that make the first one, and teach it something. */
export function curls() {
  const at = new URL(".", location.href).href;
  const auth = key.get() === null ? "" : " -H 'X-API-Key: …'";
  const start = `curl -H 'Content-Type: application/json'${auth} ${at}`;
  const arms =
    '[{"id": "a", "features": [0.2, null, 1.3]}, {"id": "b", "features": [0.1, 0.7, 0.0]}]';
  return [
    `${start}select -d '{"event_id": "e1", "arms": ${arms}}'`,
    `${start}reward -d '{"event_id": "e1", "reward": 1.0}'`,
  ].join("\n\n");
}
