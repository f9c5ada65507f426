// The mill as it is now: one stream of whole overviews. A reconnect begins with the present one, so nothing is missed.

let latest = null;
let lost = null;
const listeners = new Set();

/** The latest overview; null before the first. */
export function overview() {
  return latest;
}

/** The reason why there is none now; null while the stream is there. */
export function failure() {
  return lost;
}

/** Calls `listener` after each change. */
export function onChange(listener) {
  listeners.add(listener);
}

function tell() {
  for (const listener of listeners) listener();
}

/** Begins to listen. */
export function connect() {
  const events = new EventSource("/api/events");
  events.addEventListener("overview", (event) => {
    [latest, lost] = [JSON.parse(event.data), null];
    tell();
  });
  events.addEventListener("lost", (event) => {
    lost = event.data;
    tell();
  });
  // The browser connects again by itself.
  events.addEventListener("error", () => {
    lost = "the console does not answer";
    tell();
  });
}

/** The status of a block. Throws with the reason where there is none. */
export async function block(number) {
  const response = await fetch(`/api/block/${number}`);
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}
