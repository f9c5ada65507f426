// The frame of a page about one service, an engine or a verifier, and when its view is drawn anew.

import { connect, disconnect, failure, onChange, overview, whileInSight } from "./live.js";
import { redrawing } from "./redraw.js";

const view = document.getElementById("view");

/** Shows a service: what `contentOf` makes of its overview, and in the frame the words of `stateOf`. */
export function showService(contentOf, stateOf = () => "running") {
  const { redraw, stillness } = redrawing(view, draw);

  function draw() {
    const seen = overview();
    const link = document.getElementById("link");
    const state = seen ? stateOf(seen) : "connecting …";
    const text = failure() ? `no connection: ${failure()}` : state + stillness();
    if (link.textContent !== text) link.textContent = text;
    link.classList.toggle("lost", failure() !== null);
    if (seen && !failure()) redraw(contentOf(seen));
  }

  onChange(draw);
  whileInSight({ enter: connect, stay: draw, leave: disconnect });
  if (!document.hidden) connect();
}
