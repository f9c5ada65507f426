// Answers that cost the mill work: each is kept for a while, however often the view that shows it is drawn.

import { get } from "./session.js";

// Time for which an answer is kept, and for which it is kept although what it is about has changed; milliseconds.
const [KEPT_MS, KEPT_IF_CHANGED_MS] = [5000, 1000];

/**
 * A function that gives the answer at a path, the one that was asked for last. `mark` is a value that changes with what the answer is
 * about; `isNew`: the view was chosen just now, so it is asked for. A refusal is kept as well.
 */
export function keptAnswer() {
  let latest = null;
  return async (path, { mark, isNew }) => {
    let known = latest;
    const keptFor = known?.mark === mark ? KEPT_MS : KEPT_IF_CHANGED_MS;
    if (isNew || known?.path !== path || Date.now() - known.at >= keptFor) {
      const answer = await get(path).then((found) => ({ found }), (error) => ({ error }));
      known = { ...answer, path, mark, at: Date.now() };
      latest = known;
    }
    if (known.error) throw known.error;
    return known.found;
  };
}
