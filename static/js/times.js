// Writes moments in the reader's own time zone, and keeps elapsed and remaining
// times going. The server writes them in UTC and as of when it rendered.

const UNITS = [
  ['day', 86400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];

// English dates and clocks are those of Europe, as the server writes them.
export const language = () => (document.documentElement.lang === 'en' ? 'en-GB' : document.documentElement.lang);

function span(seconds, lang) {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? UNITS[3];
  const display = unit === 'day' ? 'long' : 'short';
  return new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: display }).format(Math.floor(seconds / size));
}

const WRITERS = {
  'date-time': (at, lang) => at.toLocaleString(lang, { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit' }),
  clock: (at, lang) => at.toLocaleTimeString(lang),
  elapsed: (at, lang) => span(Math.max(0, (Date.now() - at) / 1000), lang),
  remaining: (at, lang) => span(Math.max(0, (at - Date.now()) / 1000), lang),
};

function write(root, kinds) {
  const lang = language();
  for (const time of root.querySelectorAll('time[data-time]')) {
    const writer = WRITERS[time.dataset.time];
    if (!writer || (kinds && !kinds.includes(time.dataset.time))) continue;
    const text = writer(new Date(time.dateTime), lang);
    if (time.textContent !== text) time.textContent = text;
  }
}

const SECOND_MS = 1_000; // what the server writes leaves out parts of a second
const RETRY_MS = 5_000;
let asked = 0;

// What waited until a moment that has come shows as it is now.
function due() {
  const waiting = [...document.querySelectorAll('[data-live] time[data-time=remaining]')];
  const passed = waiting.some((time) => new Date(time.dateTime).getTime() + SECOND_MS < Date.now());
  if (!passed || Date.now() - asked < RETRY_MS) return;
  asked = Date.now();
  htmx.trigger(document.body, 'refresh');
}

export function times() {
  write(document);
  document.body.addEventListener('htmx:after:swap', () => write(document));
  setInterval(() => {
    write(document, ['elapsed', 'remaining']);
    due();
  }, 1000);
}
