// Elements of the page.

/** The element with an id. */
export const id = (name) => document.getElementById(name);

/** A new element. */
export const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
