// Menus and questions are <details data-menu>. Here they close like menus do:
// by Escape, by a click elsewhere, by their own close button.

const openOnes = () => document.querySelectorAll('details[data-menu][open]');

function close(menu) {
  menu.open = false;
  if (menu.contains(document.activeElement)) menu.querySelector('summary').focus();
}

export function menus() {
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-close]');
    if (button) close(button.closest('details'));
    for (const menu of openOnes()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') for (const menu of openOnes()) close(menu);
  });
}
