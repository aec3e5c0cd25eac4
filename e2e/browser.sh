#!/bin/sh
# Makes sure that there is a browser for the end-to-end tests: one that is
# installed, else Debian's chromium where this user may install packages, else
# Playwright's own.
set -u

present() {
  [ -n "${BERTH_CHROMIUM:-}" ] && [ -x "$BERTH_CHROMIUM" ] && return 0
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && return 0
  done
  return 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    return 1
  fi
}

debian() {
  command -v apt-get >/dev/null 2>&1 || return 1
  echo "Installing Debian's chromium..."
  install='apt-get install -y -q --no-install-recommends chromium'
  as_root env DEBIAN_FRONTEND=noninteractive sh -c "$install || { apt-get update -q && $install; }" >/dev/null
}

playwright() {
  echo "Installing Playwright's own browser..."
  node "$(dirname "$0")/driver/package/cli.js" install --only-shell chromium
}

if present || debian || playwright; then
  exit 0
fi
echo 'No browser for the end-to-end tests: install chromium (apt-get install chromium), or name one in BERTH_CHROMIUM.' >&2
exit 1
