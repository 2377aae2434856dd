// Makes `from` equal to `to` and leaves equal parts alone, so that focus, selection, scroll position, open disclosures and
// typed text survive. Children are matched by id, then by kind and position.

// Attributes that only the reader changes.
const OWN = new Set(['open', 'value', 'checked', 'selected']);

export function morph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) { from.replaceWith(to); return; }
  if (from.nodeType !== Node.ELEMENT_NODE) { if (from.data !== to.data) from.data = to.data; return; }
  if (from.hasAttribute('data-keep') || from.isEqualNode(to)) return;
  for (const { name, value } of to.attributes) {
    if (!OWN.has(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) if (!OWN.has(name) && !to.hasAttribute(name)) from.removeAttribute(name);
  children(from, to);
}

function children(from, to) {
  const named = new Map();
  const stays = new Set([...to.children].map((child) => child.id));
  // Remove first, so that nothing else moves: a move may lose the focus.
  for (const child of [...from.children]) {
    if (!stays.has(child.id)) child.remove(); else if (child.id) named.set(child.id, child);
  }
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const same = wanted.id && named.get(wanted.id);
    if (same) {
      if (same === at) at = at.nextSibling;
      else (from.moveBefore ?? from.insertBefore).call(from, same, at);
      morph(same, wanted);
    } else if (at && !at.id && !wanted.id && at.nodeName === wanted.nodeName) {
      const next = at.nextSibling;
      morph(at, wanted);
      at = next;
    } else from.insertBefore(wanted, at);
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
}
