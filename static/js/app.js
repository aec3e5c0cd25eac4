// What the console does in the browser beyond htmx. Every page works without
// it; each module adds one comfort.
import { copying } from './copy.js';
import { live } from './live.js';
import { menus } from './menus.js';
import { palette } from './palette.js';
import { requests } from './requests.js';
import { selection } from './selection.js';
import { theme } from './theme.js';
import { times } from './times.js';

document.documentElement.dataset.js = '';
for (const start of [requests, live, times, menus, theme, copying, palette, selection]) start();
