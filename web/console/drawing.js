// Drawings: elements of SVG. Colours are classes of the style sheet, since the page's policy forbids styles in attributes.

const SVG = "http://www.w3.org/2000/svg";

/** An element of SVG with attributes and children; a child is an element, a text, or nothing. */
export function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}

/** A text that is cut to a number of characters. */
export function shortened(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
