// Elements of the page.

/** The element with an id. */
export const id = (name) => document.getElementById(name);

/** What the addresses of this daemon begin with: `/`, unless a proxy has it below a path. */
export const base = document.body.dataset.base;

/** A new element. */
export const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
