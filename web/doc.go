// Package web holds what browsers see: templ views, their view models, the
// locales and the URLs. It knows neither Echo nor the database: handlers turn
// what services answer into view models and render them.
//
// Everything a person reads goes through i18n; every URL comes from urls; no
// view has an inline style or script, since the console's Content Security
// Policy allows none.
package web
