// Live updates. `event: changed` of the stream has the topics that changed, as a JSON array, and nothing of what holds
// now. If a region of the page names one of them in `data-live`, the page is fetched again, and its regions are compared.
// A browser opens six connections to a host at most, so one tab has the stream and tells the others.
import { id, make } from './dom.js';
import { morph } from './morph.js';
import { clock, localise, setClock } from './times.js';
import { say } from './form.js';

const channel = new BroadcastChannel('everscan-live');
let url, dirty = false, busy = false, last = 0, streak = 0, version, shown = new Date(), leads, hasLeft, online = true;

const covers = (one, other) => one === other || (one.endsWith('*') && other.startsWith(one.slice(0, -1)));
const matches = (wanted, topic) => covers(topic, wanted) || covers(wanted, topic);
const names = (region, topics) => region.dataset.live.split(' ').some((w) => topics.some((t) => matches(w, t)));

function bar(text) {
  const line = id('connection');
  line.hidden = !text;
  line.textContent = text ?? '';
  return line;
}

function saySignedOut() {
  const href = `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
  const link = make('a', { href, textContent: 'Sign in' });
  bar('You are signed out. ').append(link);
}

export function refresh(topics) {
  // One without topics, such as a count in the menu, is no reason to fetch.
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
    // Four times a second at most; once a second while it goes on.
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
  // It can wait a second for a page that is made for many readers at once.
  const headers = { accept: 'text/html', prefer: 'wait=1', ...(version && { 'if-none-match': version }) };
  const answer = await fetch(location.href, { headers, cache: 'no-store' });
  if (answer.redirected && new URL(answer.url).pathname === '/login') return saySignedOut();
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
    const said = region.dataset.announce;
    if (!hold(region, fresh)) morph(region, fresh);
    if (region.dataset.announce !== said) say(region.dataset.announce ?? '');
  }
  document.dispatchEvent(new Event('renewed'));
}

// Rows that are new do not move what is being read: a link tells their number, and the others are renewed in place.
function hold(region, fresh) {
  const news = id('news');
  if (!news || !('calm' in region.dataset)) return false;
  const rows = [...fresh.querySelectorAll('tr[id]')], shown = (row) => id(row.id);
  const added = rows.filter((row) => !shown(row)).length;
  const holds = added > 0 && (scrollY > 99 || region.contains(document.activeElement));
  const text = holds ? `${added} new` : '';
  if (holds && news.textContent !== text) say(text);
  news.textContent = text;
  news.hidden = !holds;
  if (!holds) return false;
  for (const row of rows) if (shown(row)) morph(shown(row), row);
  return true;
}

function hear(message) {
  if (message.topics) refresh(message.topics);
  if (message.isSignedOut) saySignedOut();
  if (message.away !== undefined) {
    online = message.away === null;
    bar(online ? null : `Not connected. The page is of ${clock(shown)}. Tries again in ${message.away} s.`);
    // Somebody has signed in again.
    if (online && hasLeft) queue();
  }
  if (message.who && leads) channel.postMessage({ away: online ? null : 0 });
}
function tell(message) { channel.postMessage(message); hear(message); }

function listen(pause, leave) {
  const stream = new EventSource(url);
  stream.addEventListener('changed', (event) => tell({ topics: JSON.parse(event.data) }));
  stream.addEventListener('open', () => { pause = 1; tell({ away: null, topics: ['*'] }); });
  stream.addEventListener('error', async () => {
    stream.close();
    // Without a session the daemon sends every page to the sign-in.
    const page = await fetch(location.href, { redirect: 'manual' }).catch(() => null);
    if (page?.type === 'opaqueredirect') { leave(); return tell({ isSignedOut: true }); }
    // Timers of a hidden tab are late: a second may take a minute.
    const until = performance.now() + pause * 1000;
    const count = () => {
      const left = Math.ceil((until - performance.now()) / 1000);
      if (left <= 0) return listen(Math.min(30, pause * 2), leave);
      tell({ away: left });
      setTimeout(count, 1000);
    };
    count();
  });
}

// Locks exist on secure addresses alone; elsewhere each tab has its own stream.
function queue() {
  hasLeft = false;
  const lead = () => new Promise((done) => {
    leads = true;
    listen(1, () => { leads = false; hasLeft = true; done(); });
  });
  if (navigator.locks) navigator.locks.request('everscan-live', lead); else lead();
}

export function startLive(address) {
  url = address;
  channel.onmessage = (event) => hear(event.data);
  queue();
  channel.postMessage({ who: true });
  // The page may have changed since it was made, and no event tells what time alone changes.
  const all = () => refresh(['*']);
  all();
  setInterval(all, 60000);
  addEventListener('pageshow', (event) => { if (event.persisted) all(); });
}
