// Package locales embeds the texts of the console: a file for each page family
// and language, "gpus.en.toml" beside "gpus.fr.toml". All of them make up one
// set of keys; the files only keep them in readable pieces.
package locales

import "embed"

// Files are the message files.
//
//go:embed *.toml
var Files embed.FS
