// Ctrl-K or Cmd-K leads to the search, as the field itself says.
export function shortcuts() {
  document.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    const field = document.querySelector('[data-shortcut]');
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
}
