// The finder: pages of the menu; workflows, scans, runners and sources, from links with `data-find` in their pages; and
// jobs whose ids begin or end with the typed digits, from the daemon.
import { base, id, make } from './dom.js';

let entries, offers = [], chosen = 0, asked, jobs = [];

// The entries of a list, and of up to `more` next pages.
async function linked(address, more = 0) {
  const answer = await fetch(address).catch(() => null);
  if (!answer?.ok) return [];
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const next = more && page.querySelector('a[rel=next]');
  return [...page.querySelectorAll('a[data-find]')].map((link) => ({
    text: link.dataset.name ?? link.textContent.trim(), kind: link.dataset.find, href: link.getAttribute('href'),
  })).concat(next ? await linked(next.getAttribute('href'), more - 1) : []);
}

async function collect() {
  const menu = [...document.querySelectorAll('.rail a.item')];
  const pages = menu.map((link) => ({ text: link.textContent.trim(), kind: 'page', href: link.href }));
  entries ??= pages;
  // The lists of workflows, runners and sources have these shortcuts.
  const lists = menu.filter((link) => /g[wrs]/.test(link.dataset.key));
  entries = pages.concat(...await Promise.all(lists.map((list) => linked(list.href, 20))));
}

async function ask(digits) {
  asked = digits;
  jobs = [];
  const found = digits && await linked(`${base}jobs?id=${digits}`);
  if (found && asked === digits) { jobs = found; draw(); }
}

function draw() {
  const wanted = id('finder-text').value.trim().toLowerCase();
  const digits = /^[\da-f-]{4,36}$/.test(wanted) ? wanted : '';
  if (digits !== asked) ask(digits);
  const place = (entry) => entry.text.toLowerCase().indexOf(wanted);
  offers = jobs.concat(entries.filter((entry) => place(entry) >= 0).sort((a, b) => place(a) - place(b))).slice(0, 12);
  chosen = Math.max(0, Math.min(chosen, offers.length - 1));
  id('finder-list').replaceChildren(...offers.map((entry, place) => {
    const item = make('li', { id: `found-${place}`, role: 'option', ariaSelected: String(place === chosen) });
    const link = make('a', { href: entry.href, textContent: entry.text, tabIndex: -1 });
    item.append(link, make('span', { className: 'muted small', textContent: entry.kind }));
    return item;
  }));
  id('finder-none').hidden = offers.length > 0;
  id('finder-text').setAttribute('aria-activedescendant', offers.length ? `found-${chosen}` : '');
}

export async function openFinder() {
  if (id('finder').open) return;
  id('finder-text').value = '';
  chosen = 0;
  id('finder').showModal();
  const all = collect();
  draw();
  await all;
  draw();
}

export function startFinder() {
  id('finder-text').addEventListener('input', () => { chosen = 0; draw(); });
  id('finder-text').addEventListener('keydown', (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) { chosen += by; draw(); event.preventDefault(); }
    if (event.key === 'Enter' && offers[chosen]) location.assign(offers[chosen].href);
  });
  for (const dialog of document.querySelectorAll('dialog')) {
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  }
  document.addEventListener('click', (event) => {
    const opens = event.target.closest('[data-opens]');
    if (!opens || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (opens.dataset.opens === 'finder') openFinder(); else id(opens.dataset.opens)?.showModal();
  });
}
