// Keyboard shortcuts. They are off while the reader types, and if the settings say so. The keys in `data-key` click their
// element.
import { id } from './dom.js';
import { setting } from './times.js';
import { openFinder } from './finder.js';

function row(by) {
  const rows = [...document.querySelectorAll('main .rows tbody tr')].filter((tr) => tr.querySelector('a'));
  const at = rows.findIndex((tr) => tr.contains(document.activeElement));
  rows[at < 0 ? 0 : at + by]?.querySelector('a').focus();
}

const SINGLE = {
  '?': () => id('shortcuts').showModal(),
  '/': () => { const text = id('log-text'); if (text) text.focus(); else openFinder(); },
  j: () => row(1),
  k: () => row(-1),
  u: () => [...document.querySelectorAll('.crumbs a')].pop()?.click(),
  '.': () => document.querySelector('.head .actions :is(a, button, summary)')?.focus(),
};

export function startKeys() {
  let former = '';
  document.addEventListener('keydown', (event) => {
    if (setting('keys') === 'off' || event.altKey) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') { event.preventDefault(); openFinder(); return; }
    // The focus may still be in a dialog that was just closed.
    if (event.ctrlKey || event.metaKey || event.target.closest('input, textarea, select, [contenteditable], dialog')?.checkVisibility()) return;
    const pair = former + event.key;
    former = event.key === 'g' && former !== 'g' ? 'g' : '';
    const stands = (keys) => document.querySelector(`[data-key="${CSS.escape(keys)}"]`);
    const named = stands(pair) ?? stands(event.key);
    if (named) named.click();
    else if (Object.hasOwn(SINGLE, event.key)) SINGLE[event.key]();
    else return;
    event.preventDefault();
  });
}
