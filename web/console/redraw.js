// Drawing a view anew in a person's hands: what is pressed, written or selected waits, and scrolling and focus stay.

// Attributes that tell an element of a view from others, the one that tells most first.
const NAMES = ["data-key", "id", "href", "aria-label"];

/** A function that finds the element in the place of `element` once its view is drawn anew; null if nothing tells it from others. */
function successorOf(view, element) {
  const name = NAMES.find((it) => element.getAttribute(it));
  if (!name) return null;
  const selector = `[${name}="${CSS.escape(element.getAttribute(name))}"]`;
  // Several links may lead to the same place.
  const place = [...view.querySelectorAll(selector)].indexOf(element);
  return () => {
    const equals = view.querySelectorAll(selector);
    return equals[Math.min(place, equals.length - 1)];
  };
}

/** A function that gives the focus to the successor of the element that has it. Without one the view gets it, or the next key would act
 * on the whole page. */
function refocusing(view) {
  const element = document.activeElement;
  if (!element || element === view || !view.contains(element)) return () => {};
  const successor = successorOf(view, element);
  const { selectionStart: start, selectionEnd: end } = element;
  return () => {
    const next = successor?.();
    (next ?? view).focus({ preventScroll: true });
    if (next && typeof start === "number") next.setSelectionRange(start, end);
  };
}

/** A function that scrolls the successors of regions as the regions are scrolled now. */
function rescrolling(view) {
  const scrolled = [...view.querySelectorAll("[role=region]")].filter((it) => it.scrollLeft || it.scrollTop);
  const places = scrolled.map((it) => [successorOf(view, it), it.scrollLeft, it.scrollTop]);
  return () => {
    for (const [successor, left, top] of places) successor?.()?.scrollTo({ left, top, behavior: "instant" });
  };
}

/**
 * How a view is drawn anew. `redraw` draws content at once, unless a person holds something in the view: `drawAnew` is called when they
 * let go, and whenever text in the view begins or ceases to be selected. `stillness` says in words that the view stands still for long.
 */
export function redrawing(view, drawAnew) {
  let [isPressed, isComposing, isSelected, isDue] = [false, false, false, false];

  function hasSelection() {
    const selection = getSelection();
    return !selection.isCollapsed && selection.rangeCount > 0 && selection.getRangeAt(0).intersectsNode(view);
  }

  function redraw(content, { isNew = false } = {}) {
    // What was written in the view before is gone.
    if (isNew) isComposing = false;
    isDue = !isNew && (isPressed || isComposing || hasSelection());
    if (isDue) return;
    const [refocus, rescroll] = [refocusing(view), rescrolling(view)];
    view.replaceChildren(...content);
    if (isNew) {
      view.focus({ preventScroll: true });
      return;
    }
    rescroll();
    refocus();
  }

  const press = () => { isPressed = true; };
  // The click that follows the release still needs the element.
  const release = () => {
    if (!isPressed) return;
    setTimeout(() => {
      isPressed = false;
      if (isDue) drawAnew();
    });
  };
  view.addEventListener("pointerdown", press);
  // The space bar presses a button until it is released.
  view.addEventListener("keydown", (event) => event.key === " " && press());
  for (const name of ["pointerup", "pointercancel", "keyup", "blur"]) addEventListener(name, release);
  // Nobody tells of a release on a scroll bar or in a menu.
  addEventListener("pointermove", (event) => event.buttons || release());
  view.addEventListener("compositionstart", () => { isComposing = true; });
  view.addEventListener("compositionend", () => { isComposing = false; });
  document.addEventListener("selectionchange", () => {
    if (isSelected === hasSelection()) return;
    isSelected = !isSelected;
    drawAnew();
  });
  const stillness = () => (hasSelection() ? "; the view stands still while text in it is selected" : "");
  return { redraw, stillness };
}
