// Joins htmx and the console: what stays as it is while a part is refreshed,
// where the focus goes after a refusal, and what is said when the server does
// not answer as it should.

// Whether something is open, and a form's idempotency key, belong to whoever
// looks at the page: a refresh leaves them alone.
function mayChange(element, detail) {
  if (element.matches('details, dialog') && detail.attrName === 'open') return false;
  if (element.matches('input[name=idempotency_key]') && detail.attrName === 'value') return element.form === answered;
}

// The form whose answer is being put in place: its key is used up.
let answered = null;

function toast(text) {
  const box = document.getElementById('toasts');
  const item = document.createElement('div');
  item.className = 'toast';
  const words = document.createElement('p');
  words.textContent = text;
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = box.dataset.close;
  button.addEventListener('click', () => item.remove());
  item.append(words, button);
  box.replaceChildren(item);
}

function focusWhatMatters() {
  document.querySelector('#main [data-focus]')?.focus();
}

export function requests() {
  htmx.registerExtension('berth', { htmx_before_morph_attr: mayChange });

  // What is left empty in a filter has no place in the URL.
  document.body.addEventListener('htmx:config:request', (event) => {
    const { sourceElement, request } = event.detail.ctx;
    if (!sourceElement.matches('form[method=get]')) return;
    for (const [name, value] of [...request.body]) if (value === '') request.body.delete(name);
  });
  document.body.addEventListener('htmx:before:swap', (event) => {
    const { sourceElement: source, response } = event.detail.ctx;
    if (!source.matches('form[method=post]')) return;
    answered = source;
    // A question that was answered closes; one whose answer was refused stays.
    if (response.status < 400) source.closest('details[data-menu]')?.removeAttribute('open');
  });
  document.body.addEventListener('htmx:after:swap', (event) => {
    answered = null;
    if (event.detail.ctx.sourceElement.matches('form[method=post]')) focusWhatMatters();
  });
  document.body.addEventListener('htmx:response:error', (event) => {
    if (event.detail.ctx.response.status >= 500) {
      const id = event.detail.ctx.response.headers.get('X-Request-Id') ?? '';
      toast(document.getElementById('toasts').dataset.failed.replace('%', id));
    }
  });
  document.body.addEventListener('htmx:error', (event) => {
    const { ctx } = event.detail;
    // A part that refreshes itself fails silently: the live indicator speaks.
    if (ctx && !ctx.sourceElement.matches('[data-live], #nav, #stream')) {
      toast(document.getElementById('toasts').dataset.unreachable);
    }
  });
  // Forms that leave the page: a second press of the button sends nothing.
  document.addEventListener('submit', (event) => {
    const form = event.target;
    for (const back of form.querySelectorAll('input[name=back][data-here]')) back.value = location.pathname + location.search;
    if (form.matches('form[method=post]:not([hx-post])')) {
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = 'yes';
    }
  });
  window.addEventListener('pageshow', () => {
    for (const form of document.querySelectorAll('form[data-sent]')) delete form.dataset.sent;
  });
  focusWhatMatters();
}
