// Package services holds the words that every layer shares: identifiers,
// enumerations and the one error type. It imports nothing of the project, so
// that db, the services below it, handlers and web can all use the same names.
//
// Each enumeration here equals a CHECK constraint in db/migrations.
package services
