// Follows the live stream: shows when the page was last in touch with the
// server, asks for everything anew after an interruption, and leads to the
// sign-in when the session ends. What changes is announced by named events,
// which htmx dispatches on the stream's element and which bubble to the body.
import { language } from './times.js';

const clock = () => new Date().toLocaleTimeString(language());

// The server says something every 15 seconds at least; a stream that is silent
// for longer than this is dead, though nobody closed it.
const SILENCE_MS = 40_000;

// How long the first connection may take. It may also have failed before this
// module was there to hear of it.
const FIRST_MS = 5_000;

function show(state) {
  const box = document.getElementById('live');
  if (!box || box.dataset.liveState === state.name) {
    if (box && state.name === 'live') box.querySelector('.live-text').textContent = state.text(box);
    return;
  }
  const before = box.dataset.liveState;
  box.dataset.liveState = state.name;
  box.querySelector('.live-text').textContent = state.text(box);
  // Only a loss and what ends it are worth reading out.
  if (state.name === 'lost' || before === 'lost') box.querySelector('[role=status]').textContent = state.text(box);
}

const on = { name: 'live', text: (box) => box.dataset.live.replace('%', clock()) };
const lost = { name: 'lost', text: (box) => box.dataset.lost.replace('%', clock()) };

export function live() {
  const stream = document.getElementById('stream');
  if (!stream) return;
  // The page shown now, which may not be the one that the frame came with.
  const leave = () => {
    const login = new URL(stream.dataset.login, location.href);
    login.searchParams.set('next', location.pathname + location.search);
    location.assign(login);
  };
  let connections = 0;
  let leaving = false;
  let heard = Date.now();
  const connect = () => {
    heard = Date.now();
    htmx.ajax('GET', stream.getAttribute('hx-sse:connect'), { source: stream });
  };
  setInterval(() => {
    if (document.hidden || Date.now() - heard < (connections > 0 ? SILENCE_MS : FIRST_MS)) return;
    show(lost);
    if (connections === 0) connect();
  }, 2_000);
  window.addEventListener('pagehide', () => (leaving = true));
  window.addEventListener('pageshow', () => (leaving = false));

  const connected = () => {
    heard = Date.now();
    show(on);
    if (connections++ > 0) htmx.trigger(document.body, 'refresh');
  };
  stream.addEventListener('htmx:sse:after:connection', connected);
  // htmx does not wait for this module; the first connection may be there already.
  if (stream._htmx?.sse) connected();
  stream.addEventListener('htmx:sse:before:message', () => {
    heard = Date.now();
    show(on);
  });
  stream.addEventListener('htmx:sse:before:connection', (event) => {
    const again = event.detail.connection.attempt > 0;
    if (!again && connections > 0) event.preventDefault(); // one that was slow came after all
    else if (again && !leaving && !document.hidden) show(lost);
  });
  stream.addEventListener('htmx:sse:error', (event) => {
    if (event.detail.status === 401) leave();
    else if (!leaving) show(lost);
  });
  stream.addEventListener('session-ended', leave);
  // The first connection is an ordinary request: it may fail altogether, and
  // the stream then has nothing to reconnect.
  stream.addEventListener('htmx:finally:request', () => {
    if (connections > 0 || leaving) return;
    show(lost);
    setTimeout(connect, 2000);
  });
}
