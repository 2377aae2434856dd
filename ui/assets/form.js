// Forms: copy buttons, counters of typed text, settings of this browser, and protection against sending a form twice.
import { id } from './dom.js';
import { localise } from './times.js';

/** Announces a text to screen readers. */
export function announce(text) { id('announcements').textContent = text; }

/** Copies a text, or shows it selected: only secure addresses have a clipboard. */
export async function copy(text) {
  const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (isCopied) announce('Copied');
  else prompt('Copy:', text);
}

function count(area) {
  const note = area.nextElementSibling;
  const { most, unit } = area.dataset;
  const text = area.value.replace(/\r\n/g, '\n');
  const size = unit === 'bytes' ? new TextEncoder().encode(text).length : [...text].length;
  note.textContent = `${size.toLocaleString('en')} of ${Number(most).toLocaleString('en')} ${unit}`;
  area.setCustomValidity(size > most ? 'Too long.' : '');
}

export function startForms() {
  for (const area of document.querySelectorAll('textarea[data-most]')) {
    area.addEventListener('input', () => count(area));
  }
  for (const choice of document.querySelectorAll('select[data-setting]')) {
    const name = choice.dataset.setting;
    try { choice.value = localStorage.getItem(name) ?? choice.value; } catch { continue; }
    choice.addEventListener('change', () => {
      localStorage.setItem(name, choice.value);
      if (name === 'theme') document.documentElement.dataset.theme = choice.value;
      localise(document);
    });
  }
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-copy]');
    if (button) copy(button.dataset.copy);
  });
  document.addEventListener('submit', (event) => {
    if (event.target.method !== 'post') return;
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = 'yes';
  });
  // When the browser restores a page, its forms may be sent again.
  addEventListener('pageshow', () => {
    for (const form of document.querySelectorAll('form[data-sent]')) delete form.dataset.sent;
  });
}
