// The text of a log line as pieces with classes, and as nodes. Content of the log becomes text nodes only, and links
// only to http and https.
import { make } from './dom.js';

// A colour, another terminal sequence, or a control character. All are removed from the text.
const SEQUENCE = /\x1b\[([\d;:]*)m|\x1b\[[\d;:<=>?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-Z\\^-~]?|[\x00-\x08\x0b-\x1f\x7f]/g;

/** Pieces as `[text, classes]`. A carriage return restarts the line, as in a terminal. */
export function pieces(text) {
  text = text.replace(/\r+$/, '');
  const from = text.lastIndexOf('\r') + 1;
  const found = [];
  // Weight, slant, underline, colour, background.
  const style = ['', '', '', '', ''];
  let at = 0;
  const push = (end) => {
    const part = text.slice(Math.max(at, from), end);
    if (end > from && part) found.push([part, style.filter(Boolean).join(' ')]);
  };
  for (const match of text.matchAll(SEQUENCE)) {
    push(match.index);
    at = match.index + match[0].length;
    if (match[1] === undefined) continue;
    const codes = match[1].split(/[;:]/).map(Number);
    for (let i = 0; i < codes.length; i++) {
      // Bright colours are shown as plain ones; bright black is grey.
      const code = codes[i] > 90 && codes[i] % 10 < 8 ? codes[i] - 60 : codes[i];
      if (code === 0) style.fill('');
      else if (code < 30) {
        const place = [-1, 0, 0, 1, 2][code % 20] ?? -1;
        if (place >= 0) style[place] = code < 20 ? `a${code}` : '';
      } else if (code < 50 || code === 90) {
        // Colours without a name are not shown.
        style[code >= 40 && code < 50 ? 4 : 3] = code % 10 < 8 ? `a${code}` : '';
        if (code % 10 === 8) i += { 5: 2, 2: 4 }[codes[i + 1]] ?? 0;
      }
    }
  }
  push(text.length);
  return found;
}

const LINK = /\bhttps?:\/\/[^\s<>"'`\\^{|}]+[^\s<>"'`\\^{|}.,;:!?)\]]/g;

/** The line as nodes, with matches of the search marked. */
export function render(text, query) {
  const line = document.createDocumentFragment();
  for (const [part, classes] of pieces(text)) {
    const parent = classes ? line.appendChild(make('span', { className: classes })) : line;
    let at = 0;
    for (const match of part.matchAll(LINK)) {
      mark(parent, part.slice(at, match.index), query);
      const link = make('a', { href: match[0], rel: 'noreferrer noopener', target: '_blank' });
      mark(link, match[0], query);
      parent.append(link);
      at = match.index + match[0].length;
    }
    mark(parent, part.slice(at), query);
  }
  return line;
}

function mark(parent, text, query) {
  const wanted = query?.toLowerCase(), lower = text.toLowerCase();
  let at = 0;
  // If lower case has another length, positions would be wrong.
  while (wanted && lower.length === text.length) {
    const found = lower.indexOf(wanted, at);
    if (found < 0) break;
    parent.append(text.slice(at, found));
    parent.append(make('mark', { textContent: text.slice(found, found + wanted.length) }));
    at = found + wanted.length;
  }
  if (at < text.length) parent.append(text.slice(at));
}
