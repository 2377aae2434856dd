// Runs when the page is loaded. `data-settled` on the root element says that no update is in progress.
import { id } from './dom.js';
import { localise } from './times.js';
import { startForms } from './form.js';
import { startLive } from './live.js';
import { startLog } from './log.js';
import { startFinder } from './finder.js';
import { startKeys } from './keys.js';
import { startUploads } from './upload.js';

localise(document);
// On a phone the menu is wider than the screen.
const here = document.querySelector('.rail [aria-current]');
if (here) here.parentNode.scrollLeft = here.offsetLeft - 150;
setInterval(() => { if (!document.hidden) localise(document); }, 1000);
startForms();
if (document.querySelector('[data-log]')) startLog();
if (document.querySelector('form[data-upload]')) startUploads();
if (id('finder')) { startFinder(); startKeys(); }
document.documentElement.dataset.settled = '';
if (document.body.dataset.stream) startLive(document.body.dataset.stream);
