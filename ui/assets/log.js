// A window over a log of any length. The scroll position stands for a record number. Only visible lines are in the
// document, in normal flow, so that wrapped lines have any height.
import { id, make } from './dom.js';
import { render } from './ansi.js';
import { clock } from './times.js';
import { copy } from './form.js';
import { morph } from './morph.js';

const ROW = 20, PAGE = 512, KEEP = 24;
// Browsers limit the height of an element.
const HIGHEST = 8_000_000;
const part = (tag, className, textContent = '') => make(tag, { className, textContent });

class Log {
  constructor(box) {
    Object.assign(this, { box, pages: new Map(), query: '', matches: [], match: -1, total: 0 });
    this.state = id('log-state');
    this.followButton = id('log-follow');
    this.pad = part('div', 'pad');
    this.rows = part('div', 'lines');
    this.pad.append(this.rows);
    box.replaceChildren(this.pad);
    box.addEventListener('scroll', () => this.schedule(), { passive: true });
    new ResizeObserver(() => this.schedule()).observe(box);
    addEventListener('hashchange', () => this.toHash());
    document.addEventListener('renewed', () => this.renew());
    this.followButton.addEventListener('click', () => this.go(Infinity));
    this.read();
    if (this.toHash()) return;
    this.go(this.over ? 0 : Infinity);
    if (box.dataset.failed) this.find(`step=${box.dataset.failed}`, (n) => this.go(n));
  }
  read() { this.total = Number(this.state.dataset.records); this.over = this.state.dataset.over === 'true'; }
  get seen() { return Math.max(1, Math.floor(this.box.clientHeight / ROW)); }
  get room() { return Math.max(1, this.height - this.box.clientHeight); }
  get lastTop() { return Math.max(0, this.total - this.seen); }
  get height() { return Math.min(HIGHEST, Math.max(this.total * ROW, this.box.clientHeight)); }
  get isAtEnd() { return this.first >= this.lastTop && this.box.scrollTop + this.box.clientHeight + ROW > this.box.scrollHeight; }
  schedule() {
    if (this.queued) return;
    this.queued = requestAnimationFrame(() => {
      this.queued = 0;
      // A requested line stays exact until the reader scrolls.
      if (this.box.scrollTop !== this.placed) {
        const share = Math.min(1, this.box.scrollTop / this.room);
        this.first = this.height < HIGHEST ? Math.min(this.lastTop, Math.round(this.box.scrollTop / ROW)) : Math.round(share * this.lastTop);
        this.goal = this.isAtEnd ? Infinity : -1;
      }
      this.draw();
    });
  }
  // The position until the reader scrolls: a line, or the end, which is followed.
  go(n) {
    this.goal = Math.max(0, n);
    this.draw();
  }
  // Near the end, wrapped rows are higher than the screen, so the line is somewhere among them.
  place() {
    const { box, goal, first, rows } = this;
    const above = goal > first ? rows.querySelector(`[data-n="${goal + 1}"]`)?.offsetTop ?? rows.offsetHeight : 0;
    const top = this.height < HIGHEST ? first * ROW : (first / Math.max(1, this.lastTop)) * this.room;
    box.scrollTop = Math.min(top, this.pad.offsetHeight - rows.offsetHeight) + above;
    this.placed = box.scrollTop;
  }
  toHash() {
    const found = /^#L(\d+)(?:-L?(\d+))?$/.exec(location.hash);
    if (!found) return false;
    this.marked = [found[1] - 1, (found[2] ?? found[1]) - 1];
    this.go(this.marked[0] - 2);
    return true;
  }
  renew() {
    const { total, over } = this;
    this.read();
    if (this.total !== total || this.over !== over) this.draw();
    if (this.over !== over && this.query) this.moreMatches();
  }
  async load(page) {
    const entry = { lines: this.pages.get(page)?.lines ?? [], total: this.total };
    this.pages.set(page, entry);
    if (this.pages.size > KEEP) this.pages.delete(this.pages.keys().next().value);
    const lines = await this.records(`from=${page * PAGE}&limit=${PAGE}`).catch(() => null);
    if (lines) entry.lines = lines;
    else {
      await new Promise((done) => setTimeout(done, 2000));
      entry.total = -1;
    }
    this.draw();
  }
  async records(query) {
    const answer = await fetch(`${this.box.dataset.log}?${query}`);
    if (!answer.ok) throw new Error(answer.status);
    return (await answer.text()).split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }
  record(n) {
    const number = Math.floor(n / PAGE), page = this.pages.get(number), record = page?.lines[n % PAGE];
    // A missing line was written after its page was loaded.
    if (!page || (!record && page.total < this.total)) this.load(number);
    else {
      // Marks the page as most recently used.
      this.pages.delete(number);
      this.pages.set(number, page);
    }
    return record;
  }
  draw() {
    const before = this.first;
    this.first = Math.max(0, Math.min(this.lastTop, this.goal < 0 ? this.first : this.goal));
    const lines = part('div', 'lines');
    const end = Math.min(this.total, this.first + this.seen + 2);
    let step = this.first ? this.pages.get(Math.floor((this.first - 1) / PAGE))?.lines[(this.first - 1) % PAGE]?.step : undefined;
    let isWhole = true;
    for (let n = this.first; n < end; n++) {
      const record = this.record(n);
      isWhole &&= record !== undefined;
      if (record?.step !== undefined && record.step !== step) {
        step = record.step;
        const script = document.querySelector(`[data-step="${step}"] :is(b,.script)`)?.textContent;
        lines.append(part('div', 'line group', `Step ${step + 1}${script ? ` · ${script}` : ''}`));
      }
      lines.append(this.line(n, record));
    }
    if (!this.total) lines.append(part('p', 'empty', this.over ? 'The job wrote no output.' : 'No output yet.'));
    // Lines that do not move keep focus and selection.
    if (this.first === before) morph(this.rows, lines); else this.rows.replaceChildren(...lines.childNodes);
    this.pad.style.height = `${Math.max(this.height, this.rows.offsetHeight)}px`;
    if (this.goal >= 0) this.place();
    // The log of a finished job does not grow.
    this.followButton.hidden = this.isAtEnd || this.over;
    this.box.toggleAttribute('data-drawn', isWhole);
  }
  line(n, record) {
    const line = part('div', 'line');
    line.dataset.n = n + 1;
    if (record && record.stream !== 'stdout') line.classList.add(record.stream);
    if (this.marked && n >= this.marked[0] && n <= this.marked[1]) line.classList.add('marked');
    const link = make('a', { textContent: n + 1, href: `#L${n + 1}`, ariaLabel: `Line ${n + 1}` });
    const time = part('time', '');
    const text = part('span', 't');
    if (record) {
      time.dateTime = time.title = record.at;
      time.textContent = clock(new Date(record.at));
      // Faint, because later output has overwritten it.
      if (/\r+$/.test(record.text)) line.classList.add('a2');
      text.append(render(record.text, this.query));
    }
    line.append(link, time, text);
    return line;
  }
  range(from, to) { return `L${from + 1}${to > from ? `-L${to + 1}` : ''}`; }
  show(n) { this.marked = [n, n]; this.go(n - 2); history.replaceState(null, '', `#L${n + 1}`); }
  async search(query) {
    Object.assign(this, { query, matches: [], match: -1, cursor: undefined, count: 0 });
    if (query) await this.moreMatches(); else this.showCount();
    if (this.matches.length) this.step(1);
    this.draw();
  }
  // Loads the next matches, or all again, because the log may have grown since the last search.
  async moreMatches() {
    const { query, total } = this, from = this.cursor ? `&cursor=${encodeURIComponent(this.cursor)}` : '';
    const answer = await fetch(`${this.box.dataset.search}?q=${encodeURIComponent(query)}&limit=1000${from}`).catch(() => null);
    if (!answer?.ok || query !== this.query) return;
    const found = await answer.json();
    if (!this.cursor) this.matches = [];
    this.searched = total;
    this.matches.push(...found.matches.map((match) => match.n));
    [this.cursor, this.count] = [found.next_cursor, found.total];
    this.showCount();
  }
  async step(by) {
    if (!this.query) return;
    if (by > 0 && this.match + 1 >= this.matches.length && (this.cursor || this.searched !== this.total)) await this.moreMatches();
    if (!this.matches.length) return;
    this.match = (this.match + by + this.matches.length) % this.matches.length;
    this.showCount();
    this.show(this.matches[this.match]);
  }
  showCount() {
    const none = this.query && !this.count ? 'none' : '';
    id('log-hits').textContent = this.count ? `${this.match + 1} of ${this.count.toLocaleString('en')}` : none;
  }
  // Shows the first matching line.
  async find(query, show = (n) => this.show(n)) {
    const [record] = await this.records(`${query}&limit=1`).catch(() => []);
    if (record) show(record.n);
  }
}

export function startLog() {
  const box = document.querySelector('[data-log]');
  const log = (box.log = new Log(box));
  const text = id('log-text');
  let pause;
  text.addEventListener('input', () => { clearTimeout(pause); pause = setTimeout(() => log.search(text.value), 250); });
  text.addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); log.step(event.shiftKey ? -1 : 1); } });
  const actions = {
    next: () => log.step(1), previous: () => log.step(-1), error: () => log.find(`from=${(log.marked?.[1] ?? log.first - 1) + 1}&stream=stderr`),
    first: () => log.go(0), last: () => log.go(Infinity),
    link: () => copy(`${location.origin}${location.pathname}#${log.range(...(log.marked ?? [log.first, log.first]))}`),
  };
  for (const tool of document.querySelectorAll('[data-log-tool]')) tool.hidden = false;
  box.addEventListener('click', (event) => {
    const to = event.target.closest('.line>a')?.parentNode.dataset.n - 1;
    // With the shift key, the range from the marked line.
    if (!event.shiftKey || !log.marked || !(to >= 0)) return;
    event.preventDefault();
    log.marked = [Math.min(log.marked[0], to), Math.max(log.marked[0], to)];
    history.replaceState(null, '', `#${log.range(...log.marked)}`);
    log.draw();
  });
  document.addEventListener('click', (event) => {
    const tool = event.target.closest('[data-log-action],[data-toggles],[data-step]');
    if (!tool) return;
    if (tool.dataset.step) { event.preventDefault(); log.find(`step=${tool.dataset.step}`); }
    actions[tool.dataset.logAction]?.();
    if (tool.dataset.toggles) {
      tool.ariaPressed = String(box.classList.toggle(tool.dataset.toggles) === (tool.dataset.on === 'set'));
      log.draw();
    }
  });
}
