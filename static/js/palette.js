// The command palette: Ctrl-K or Cmd-K opens it. The server makes the list;
// here it is fetched while one types, and walked through by keys.
const DELAY_MS = 120;

let asked; // the request under way
let timer;

const box = () => document.getElementById('palette');
const options = () => [...box().querySelectorAll('[role=option]')];

function choose(option) {
  const field = box().querySelector('input');
  for (const o of options()) o.setAttribute('aria-selected', String(o === option));
  if (option) {
    field.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  } else field.removeAttribute('aria-activedescendant');
}

const chosen = () => box().querySelector('[role=option][aria-selected=true]');

async function ask(text) {
  asked?.abort();
  asked = new AbortController();
  const url = new URL(box().dataset.source, location.href);
  url.searchParams.set('q', text);
  try {
    const answer = await fetch(url, { signal: asked.signal, headers: { 'HX-Request': 'true' } });
    if (!answer.ok || answer.headers.get('HX-Redirect')) return;
    box().querySelector('[data-choices]').innerHTML = await answer.text();
    const field = box().querySelector('input');
    field.setAttribute('aria-expanded', String(options().length > 0));
    choose(options()[0]);
  } catch (error) {
    if (error.name !== 'AbortError') box().querySelector('[data-choices]').replaceChildren();
  }
}

function open(text) {
  const dialog = box();
  if (!dialog || dialog.open) return;
  dialog.showModal();
  const field = dialog.querySelector('input');
  field.value = text;
  field.select();
  ask(text);
}

function go(option) {
  const press = option.dataset.press;
  if (!press) return location.assign(option.href);
  box().close();
  document.querySelector(press)?.click();
}

function move(by) {
  const all = options();
  if (all.length === 0) return;
  const at = all.indexOf(chosen());
  choose(all[(at + by + all.length) % all.length]);
}

const keys = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Home: () => choose(options()[0]),
  End: () => choose(options().at(-1)),
  Enter: () => (chosen() ? go(chosen()) : box().querySelector('form').submit()),
};

export function palette() {
  document.addEventListener('keydown', (event) => {
    const shortcut = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    if (shortcut && box()) {
      event.preventDefault();
      open('');
    } else if (keys[event.key] && event.target.closest('#palette input') && !event.isComposing) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  document.addEventListener('input', (event) => {
    if (!event.target.closest('#palette')) return;
    clearTimeout(timer);
    timer = setTimeout(() => ask(event.target.value), DELAY_MS);
  });
  document.addEventListener('click', (event) => {
    if (event.target.closest('[data-open-palette]')) open(document.getElementById('search')?.value ?? '');
    const option = event.target.closest('#palette [role=option][data-press]');
    if (option) {
      event.preventDefault();
      go(option);
    } else if (event.target === box()) box().close(); // beside it
  });
  document.addEventListener('mousemove', (event) => {
    const option = event.target.closest?.('#palette [role=option]');
    if (option && option !== chosen()) choose(option);
  });
}
