// The page of an engine.

import { drawingOf, engineContent } from "./engine-content.js";
import { showService } from "./service.js";

const drawing = drawingOf("/timeline.svg");
// The last two statuses. The page is also drawn when there is no other.
let [before, latest] = [null, null];

function content(seen) {
  if (latest !== seen) [before, latest] = [latest, seen];
  drawing.renew();
  return engineContent(seen, before, drawing);
}

showService(content, (seen) => (seen.draining ? "the engine drains" : "running"));
