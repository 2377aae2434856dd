// Live updates. `event: changed` of the stream has the changed topics as a JSON array, and no content. If a region of the
// page names one of them in `data-live`, the script fetches the page again and updates the regions that differ.
// Browsers open at most six connections to a host, so one tab has the stream and informs the others.
import { base, id, make } from './dom.js';
import { morph } from './morph.js';
import { clock, localise, setClock } from './times.js';
import { announce } from './form.js';

const channel = new BroadcastChannel(`everscan-live${base}`);
let url, dirty = false, busy = false, last = 0, streak = 0, version, shown = new Date(), leads, hasLeft, online = true;

const covers = (one, other) => one === other || (one.endsWith('*') && other.startsWith(one.slice(0, -1)));
const matches = (wanted, topic) => covers(topic, wanted) || covers(wanted, topic);
const names = (region, topics) => region.dataset.live.split(' ').some((w) => topics.some((t) => matches(w, t)));

function bar(text) {
  const line = id('connection');
  line.hidden = !text;
  line.textContent = text;
  return line;
}

function showSignedOut() {
  // The daemon redirects to the sign-in and then back.
  const link = make('a', { href: location.pathname + location.search, textContent: 'Sign in' });
  bar('You are signed out. ').append(link);
}

export function refresh(topics) {
  // Regions without topics, such as a count in the menu, never cause a fetch.
  const regions = [...document.querySelectorAll('[data-live]:not([data-live=""])')];
  if (!regions.some((region) => names(region, topics))) return;
  dirty = true;
  delete document.documentElement.dataset.settled;
  if (!busy) run();
}

async function run() {
  busy = true;
  while (dirty) {
    const gap = performance.now() - last;
    streak = gap < 1500 ? streak + 1 : 0;
    // At most four times a second; once a second if changes continue.
    const wait = (streak > 8 ? 1000 : 250) - gap;
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
    if (document.hidden) await new Promise((done) => document.addEventListener('visibilitychange', done, { once: true }));
    dirty = false;
    last = performance.now();
    await fetchAgain().catch(() => {});
  }
  busy = false;
  document.documentElement.dataset.settled = '';
}

async function fetchAgain() {
  // With `wait=1` the daemon may answer with a page that it renders for many readers at once.
  const headers = { accept: 'text/html', prefer: 'wait=1', ...(version && { 'if-none-match': version }) };
  const answer = await fetch(location.href, { headers, cache: 'no-store' });
  if (answer.redirected && new URL(answer.url).pathname === `${base}login`) return showSignedOut();
  if (!answer.ok && answer.status !== 304) return;
  shown = new Date();
  setClock(answer.headers.get('date'));
  if (!answer.ok) return;
  version = answer.headers.get('etag');
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  localise(page);
  for (const region of document.querySelectorAll('[data-live]')) {
    const fresh = page.getElementById(region.id);
    if (!fresh) continue;
    const before = region.dataset.announce;
    if (!hold(region, fresh)) morph(region, fresh);
    if (region.dataset.announce !== before) announce(region.dataset.announce ?? '');
  }
  document.dispatchEvent(new Event('renewed'));
}

// New rows must not move a list that is being read. A link shows their number, and existing rows are updated in place.
function hold(region, fresh) {
  const news = id('news');
  if (!news || !('calm' in region.dataset)) return false;
  const rows = [...fresh.querySelectorAll('tr[id]')], shown = (row) => id(row.id);
  const added = rows.filter((row) => !shown(row)).length;
  const holds = added > 0 && (scrollY > 99 || region.contains(document.activeElement));
  const text = holds ? `${added} new` : '';
  if (holds && news.textContent !== text) announce(text);
  news.textContent = text;
  news.hidden = !holds;
  if (!holds) return false;
  for (const row of rows) if (shown(row)) morph(shown(row), row);
  return true;
}

function receive(message) {
  if (message.topics) refresh(message.topics);
  if (message.isSignedOut) showSignedOut();
  if ('away' in message) {
    online = message.away === null;
    bar(online ? null : `Not connected. Page from ${clock(shown)}. Retry in ${message.away} s.`);
    // The reader has signed in again.
    if (online && hasLeft) queue();
  }
  if (message.who && leads) channel.postMessage({ away: online ? null : 0 });
}
function broadcast(message) { channel.postMessage(message); receive(message); }

function listen(pause, leave) {
  const stream = new EventSource(url);
  stream.addEventListener('changed', (event) => broadcast({ topics: JSON.parse(event.data) }));
  stream.addEventListener('open', () => { pause = 1; broadcast({ away: null, topics: ['*'] }); });
  stream.addEventListener('error', async () => {
    stream.close();
    // Without a session, the daemon redirects every page to the sign-in.
    const page = await fetch(location.href, { redirect: 'manual' }).catch(() => null);
    if (page?.type === 'opaqueredirect') { leave(); return broadcast({ isSignedOut: true }); }
    // Timers of hidden tabs are late, by up to a minute.
    const until = performance.now() + pause * 1000;
    const count = () => {
      const left = Math.ceil((until - performance.now()) / 1000);
      if (left <= 0) return listen(Math.min(30, pause * 2), leave);
      broadcast({ away: left });
      setTimeout(count, 1000);
    };
    count();
  });
}

// Only secure addresses have locks; elsewhere each tab has its own stream.
function queue() {
  hasLeft = false;
  const lead = () => new Promise((done) => {
    leads = true;
    listen(1, () => { leads = false; hasLeft = true; done(); });
  });
  if (navigator.locks) navigator.locks.request(`everscan-live${base}`, lead); else lead();
}

export function startLive(address) {
  url = address;
  // The address of a form's answer takes no GET, so the page continues at the address of the form.
  if (document.body.dataset.answer) history.replaceState(null, '', document.referrer);
  channel.onmessage = (event) => receive(event.data);
  queue();
  channel.postMessage({ who: true });
  // The page may have changed since it was rendered, and no event reports changes by time alone.
  const all = () => refresh(['*']);
  all();
  setInterval(all, 60000);
  addEventListener('pageshow', (event) => { if (event.persisted) all(); });
}
