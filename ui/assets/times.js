// Times in the reader's time zone, and running durations. The format is the same as in `words/times.rs`.

/** A setting of this browser. */
export function setting(name, otherwise) {
  try { return localStorage.getItem(name) ?? otherwise; } catch { return otherwise; }
}

// Date and time in the chosen time zone.
const iso = (at) => (setting('times') === 'utc' ? at : new Date(at - at.getTimezoneOffset() * 60000)).toISOString();

export const clock = (at) => iso(at).slice(11, 19);

const moment = (at) => `${iso(at).slice(0, 10)} ${clock(at)}${setting('times') === 'utc' ? ' UTC' : ''}`;

export function duration(millis) {
  if (millis < 1000) return `${Math.max(0, Math.floor(millis))} ms`;
  const s = Math.floor(millis / 1000);
  const pair = (large, unit, small, other) => (small ? `${large} ${unit} ${small} ${other}` : `${large} ${unit}`);
  if (s < 10) return `${s}.${Math.floor((millis % 1000) / 100)} s`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return pair(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 86400) return pair(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min');
  return pair(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h');
}

function coarse(millis) {
  const s = Math.floor(millis / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  return s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} days`;
}

const forms = {
  at: moment,
  clock,
  ago: (at, now) => (now - at < 1000 ? 'now' : `${coarse(now - at)} ago`),
  until: (at, now) => (at - now < 1000 ? 'now' : `in ${coarse(at - now)}`),
  since: (at, now) => duration(Math.max(0, now - at)),
};

let ahead = 0;

/** Corrects the clock by the daemon's time if they differ by more than two seconds. */
export function setClock(date) {
  const by = new Date(date) - Date.now();
  ahead = Math.abs(by) > 2000 ? by : 0;
}

export function localise(part) {
  const now = Date.now() + ahead;
  for (const time of part.querySelectorAll('time[data-time]')) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    const text = forms[time.dataset.time]?.(at, now);
    if (text && time.textContent !== text) time.textContent = text;
  }
  for (const time of part.querySelectorAll('[data-clock]')) time.textContent = clock(new Date(time.dataset.clock)).slice(0, 5);
  for (const bar of part.querySelectorAll('svg.progress[data-usual]')) {
    const share = (now - bar.dataset.since) / (bar.dataset.usual * 1000);
    bar.querySelector('.running')?.setAttribute('width', Math.round(1000 * Math.min(1, Math.max(0, share))));
  }
}
