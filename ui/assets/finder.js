// The finder: pages of the menu, and the workflows, scans, runners and sources that their pages link with `data-find`.

const id = (name) => document.getElementById(name);
let entries, offers = [], chosen = 0;

async function collect() {
  const menu = [...document.querySelectorAll('.rail a.item')];
  entries = menu.map((link) => ({ text: link.textContent.trim(), kind: 'page', href: link.href }));
  const lists = menu.filter((link) => ['/workflows', '/runners', '/sources'].includes(link.pathname));
  await Promise.all(lists.map(async (list) => {
    const answer = await fetch(list.href).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    for (const link of page.querySelectorAll('a[data-find]')) {
      const text = link.dataset.name ?? link.textContent.trim();
      entries.push({ text, kind: link.dataset.find, href: link.getAttribute('href') });
    }
  }));
}

function draw() {
  const wanted = id('finder-text').value.trim().toLowerCase();
  offers = entries.filter((entry) => entry.text.toLowerCase().includes(wanted))
    .sort((a, b) => a.text.toLowerCase().indexOf(wanted) - b.text.toLowerCase().indexOf(wanted)).slice(0, 12);
  if (/^[\da-f]{8}-?([\da-f]{4}-?){3}[\da-f]{12}$/.test(wanted)) offers.unshift({ text: wanted, kind: 'job', href: `/jobs/${wanted}` });
  chosen = Math.max(0, Math.min(chosen, offers.length - 1));
  id('finder-list').replaceChildren(...offers.map((entry, place) => {
    const item = Object.assign(document.createElement('li'), { id: `found-${place}`, role: 'option', ariaSelected: String(place === chosen) });
    const link = Object.assign(document.createElement('a'), { href: entry.href, textContent: entry.text, tabIndex: -1 });
    item.append(link, Object.assign(document.createElement('span'), { className: 'muted small', textContent: entry.kind }));
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
  if (!entries) { const all = collect(); draw(); await all; }
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
