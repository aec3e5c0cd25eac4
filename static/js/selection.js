// Keeps which rows of a list are ticked while one pages, filters and comes
// back, and says how many there are. A form with data-selection names the
// list; its boxes have the class row-check. Ticked rows that are not on the
// page are sent along as hidden fields.

const key = (form) => 'selection:' + form.dataset.selection;
const stored = (form) => new Set(JSON.parse(sessionStorage.getItem(key(form)) ?? '[]'));
const store = (form, ids) => sessionStorage.setItem(key(form), JSON.stringify([...ids]));
const boxes = (form) => [...form.querySelectorAll('.row-check')];

function show(form) {
  const ids = stored(form);
  const here = boxes(form);
  for (const box of here) box.checked = ids.has(box.value);
  const all = form.querySelector('.check-all');
  if (all) {
    const ticked = here.filter((box) => box.checked).length;
    all.checked = here.length > 0 && ticked === here.length;
    all.indeterminate = ticked > 0 && ticked < here.length;
  }
  const bar = form.querySelector('[data-bulk]');
  if (!bar) return;
  form.toggleAttribute('data-some', ids.size > 0);
  bar.querySelector('[data-count]').textContent = bar.dataset[ids.size === 1 ? 'one' : 'other'].replace('%', ids.size.toLocaleString(document.documentElement.lang));
  const elsewhere = bar.querySelector('[data-elsewhere]');
  const visible = new Set(here.map((box) => box.value));
  elsewhere.replaceChildren(...[...ids].filter((id) => !visible.has(id)).map((id) => {
    const field = document.createElement('input');
    field.type = 'hidden';
    field.name = here[0]?.name ?? bar.dataset.name;
    field.value = id;
    return field;
  }));
}

function showAll() {
  for (const form of document.querySelectorAll('form[data-selection]')) show(form);
}

export function selection() {
  showAll();
  document.body.addEventListener('htmx:after:swap', showAll);
  window.addEventListener('pageshow', showAll);
  document.addEventListener('change', (event) => {
    const form = event.target.closest('form[data-selection]');
    if (!form || !event.target.matches('.row-check, .check-all')) return;
    const ids = stored(form);
    const changed = event.target.matches('.check-all') ? boxes(form) : [event.target];
    for (const box of changed) {
      if (event.target.checked) ids.add(box.value);
      else ids.delete(box.value);
    }
    store(form, ids);
    show(form);
  });
  document.addEventListener('click', (event) => {
    const form = event.target.closest('[data-clear-selection]')?.closest('form[data-selection]');
    if (!form) return;
    store(form, []);
    show(form);
  });
  // What was done is done; a refusal keeps the choice.
  document.body.addEventListener('htmx:after:request', (event) => {
    const { sourceElement: form, response } = event.detail.ctx;
    if (form.matches('form[data-selection]') && response.status < 400) store(form, []);
  });
}
