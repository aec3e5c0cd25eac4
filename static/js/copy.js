// A button with data-copy puts its value on the clipboard and says so briefly.
const SHOWN_MS = 1500;

async function put(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Over plain HTTP on another machine there is no clipboard API.
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

export function copying() {
  document.addEventListener('click', async (event) => {
    const button = event.target.closest('[data-copy]');
    if (!button) return;
    event.preventDefault();
    await put(button.dataset.copy);
    button.dataset.copied = '';
    setTimeout(() => delete button.dataset.copied, SHOWN_MS);
  });
}
