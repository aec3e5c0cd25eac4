package handlers

import (
	"net/http"
	"time"
)

// The cookies. The session's ends with the browser, or when the server says so.
const (
	sessionCookie = "berth_session"
	localeCookie  = "berth_locale"
	themeCookie   = "berth_theme"
)

// preferenceLife is how long a browser remembers language and theme.
const preferenceLife = 365 * 24 * time.Hour

// cookie reads a cookie; empty where there is none.
func (r *request) cookie(name string) string {
	c, err := r.Cookie(r.cookieName(name))
	if err != nil {
		return ""
	}
	return c.Value
}

// cookieName keeps, where HTTPS allows it, other hosts of the domain from
// planting the cookie.
func (r *request) cookieName(name string) string {
	if r.site.Secure {
		return "__Host-" + name
	}
	return name
}

// token is the session's.
func (r *request) token() string { return r.cookie(sessionCookie) }

// keep sets a cookie; life 0 ends it with the browser, less removes it.
func (r *request) keep(name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: r.cookieName(name), Value: value, Path: "/", HttpOnly: true, Secure: r.site.Secure, SameSite: http.SameSiteLaxMode,
		MaxAge: int(life.Seconds()),
	}
	if life < 0 {
		c.MaxAge = -1
	}
	r.SetCookie(c)
}
