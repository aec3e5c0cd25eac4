// Builds dist/, the folder that the console embeds: the style sheet, htmx and
// its event stream extension, our own scripts, the fonts, and the licences of
// all that came from npm. Whatever stood there before goes first, so that a
// file taken out of the sources leaves the binary as well.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const from = (name) => join(here, 'node_modules', name);
const to = (name) => join(here, 'dist', name);

const vendored = {
  'htmx.org/LICENSE': 'licenses/htmx.txt',
  'tailwindcss/LICENSE': 'licenses/tailwindcss.txt',
  'daisyui/LICENSE': 'licenses/daisyui.txt',
  '@fontsource-variable/inter/LICENSE': 'licenses/inter.txt',
  '@fontsource-variable/jetbrains-mono/LICENSE': 'licenses/jetbrains-mono.txt',
};
for (const subset of ['latin', 'latin-ext']) {
  for (const family of ['inter', 'jetbrains-mono']) {
    vendored[`@fontsource-variable/${family}/files/${family}-${subset}-wght-normal.woff2`] =
      `fonts/${family}-${subset}.woff2`;
  }
}

function empty() {
  mkdirSync(to(''), { recursive: true });
  for (const name of readdirSync(to(''))) {
    if (name !== '.keep') rmSync(to(name), { recursive: true });
  }
}

function copy() {
  for (const [source, target] of Object.entries(vendored)) cpSync(from(source), to(target));
  cpSync(join(here, 'js'), to('js'), { recursive: true });
  if (existsSync(join(here, 'img'))) cpSync(join(here, 'img'), to('img'), { recursive: true });
}

// htmx starts as soon as it has run, and then needs its extension: one file, so
// that nothing comes between them.
function htmx() {
  const parts = ['htmx.org/dist/htmx.min.js', 'htmx.org/dist/ext/hx-sse.min.js'].map((name) => readFileSync(from(name), 'utf8'));
  writeFileSync(to('vendor/htmx.js'), parts.map((text) => text.replace(/^\/\/# sourceMappingURL=.*$/m, '')).join('\n;\n'));
}

function style() {
  const tailwind = from('@tailwindcss/cli/dist/index.mjs');
  execFileSync(
    process.execPath,
    [tailwind, '--input', 'css/app.css', '--output', to('css/app.css'), '--minify'],
    { cwd: here, stdio: ['ignore', 'ignore', 'inherit'] },
  );
}

empty();
copy();
mkdirSync(to('vendor'), { recursive: true });
htmx();
style();
