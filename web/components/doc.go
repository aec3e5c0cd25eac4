// Package components holds the parts that pages are made of. A part takes a
// typed view model, translates what it shows, and works without JavaScript.
//
// State is always an icon, a word and a colour. Colours are tones, given as
// data-tone and styled by static/css/parts.css.
package components
