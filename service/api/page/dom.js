/**
 * Elements are only ever made here, and what is said goes in as text: names of learners, arms and
 * features are whatever a caller has sent.
 */

const SVG = "http://www.w3.org/2000/svg";

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/**
 * An HTML element. `on` holds listeners, `class` and every other name is an attribute; children are
 * nodes or text.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node|string|null)} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. @returns {any} */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, { on = {}, ...attributes }, children) {
  set(node, attributes);
  for (const [event, listener] of Object.entries(on)) node.addEventListener(event, listener);
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** Attributes, written only where they change; null or false takes one away. */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false || value === undefined) node.removeAttribute(name);
    else {
      const text = value === true ? "" : String(value);
      if (node.getAttribute(name) !== text) node.setAttribute(name, text);
    }
  }
}

/** Text, written only where it changes: nothing flickers and no selection is lost. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A name that somebody else chose: cut by CSS where it is long, and kept from turning the line. */
export function named(text, tag = "bdi") {
  return h(tag, { class: "named", title: text }, text);
}

/** One child per item, in their order; those that stay are the same nodes as before. */
export class Keyed {
  /**
   * @param {Element} parent
   * @param {(item: any) => any} make a node for an item
   * @param {(node: any, item: any) => void} update
   */
  constructor(parent, make, update) {
    this.parent = parent;
    this.make = make;
    this.update = update;
    /** @type {Map<string, Element>} */
    this.nodes = new Map();
  }

  /** @param {any[]} items @param {(item: any, index: number) => any} keyOf */
  show(items, keyOf) {
    const before = this.nodes;
    this.nodes = new Map();
    let place = this.parent.firstElementChild;
    items.forEach((item, index) => {
      const key = keyOf(item, index);
      const node = before.get(key) ?? this.make(item);
      before.delete(key);
      this.nodes.set(key, node);
      this.update(node, item);
      if (node === place) place = place.nextElementSibling;
      else this.parent.insertBefore(node, place);
    });
    for (const node of before.values()) node.remove();
  }
}
