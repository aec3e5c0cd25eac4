#!/bin/sh
# Makes sure that there is a browser for the end-to-end tests: one that is
# installed, else Debian's chromium where this user may install packages, else
# Playwright's own. What installers say goes to driver/browser.log.
set -u
here=$(dirname "$0")
log=$here/driver/browser.log

present() {
  [ -n "${BERTH_CHROMIUM:-}" ] && [ -x "$BERTH_CHROMIUM" ] && return 0
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && return 0
  done
  return 1
}

debian() {
  command -v apt-get >/dev/null 2>&1 || return 1
  root='env'
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true >/dev/null 2>&1 || return 1
    root='sudo -n env'
  fi
  echo "Installing Debian's chromium..."
  install='apt-get install -y -q --no-install-recommends chromium'
  $root DEBIAN_FRONTEND=noninteractive sh -c "$install || { apt-get update -q && $install; }" >>"$log" 2>&1
}

playwright() {
  echo "Installing Playwright's own browser..."
  node "$here/driver/package/cli.js" install --only-shell chromium >>"$log" 2>&1
}

if present || debian || playwright; then
  exit 0
fi
echo "No browser for the end-to-end tests: install chromium, or name one in BERTH_CHROMIUM (what was tried: $log)." >&2
exit 1
