// The theme changes at once; the server is told in the background, so that it
// renders the next page in the same one.
export function theme() {
  document.addEventListener('submit', async (event) => {
    const form = event.target.closest('[data-theme-switch]');
    if (!form) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const button = event.submitter;
    const root = document.documentElement;
    if (button.dataset.attribute) root.dataset.theme = button.dataset.attribute;
    else delete root.dataset.theme;
    for (const other of form.querySelectorAll('button')) other.toggleAttribute('aria-current', other === button);
    button.setAttribute('aria-current', 'true');
    await fetch(form.action, {
      method: 'POST',
      body: new URLSearchParams({ theme: button.value, back: location.pathname }),
      redirect: 'manual',
    }).catch(() => {}); // the theme shows; that it is not remembered harms nobody
  }, true);
}
