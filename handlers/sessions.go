package handlers

import (
	"context"
	"net/http"

	"berth/services"
	"berth/services/tenancy"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/signin"
	"berth/web/urls"
)

// signer opens and ends sessions.
type signer interface {
	// SignIn refuses with bad-credentials (unauthorized) or too-many-tries (throttled).
	SignIn(ctx context.Context, email, password string) (tenancy.Session, error)
	SignOut(ctx context.Context, token string) error
}

// looker changes what a session looks at, and how.
type looker interface {
	// LookAt gives not-found for an account that the user is no member of.
	LookAt(ctx context.Context, x tenancy.Session, account services.AccountID) error
	// LookIn refuses an unknown region (invalid).
	LookIn(ctx context.Context, x tenancy.Session, region string) error
	SetLocale(ctx context.Context, x tenancy.Session, locale string) error
}

// sessionPages sign people in and out, and keep what they prefer.
type sessionPages struct {
	doors signer
	views looker
}

func (s *site) sessions() sessionPages { return sessionPages{doors: s.Tenancy, views: s.Tenancy} }

// form shows the sign-in. Whoever is signed in goes on at once.
func (h sessionPages) form(r *request) error {
	next := local(r.QueryParam("next"))
	if r.signedIn() {
		return r.seeOther(next)
	}
	page := signin.Page{Frame: r.frame(), Next: next, SignedOut: r.token() != ""}
	page.Path = urls.LoginThen(next)
	return r.render(http.StatusOK, signin.View(page))
}

// signIn opens a session, and ends the one that the browser had.
func (h sessionPages) signIn(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	next := local(f.Get("next"))
	x, err := h.doors.SignIn(r.ctx(), f.Get("email"), f.Get("password"))
	if e, ok := services.AsError(err); ok && (e.Kind == services.KindUnauthorized || e.Kind == services.KindThrottled) {
		page := signin.Page{Frame: r.frame(), Email: f.text("email"), Next: next, Broken: e.Violations}
		page.Path = urls.LoginThen(next)
		return r.render(statusOf(e.Kind), signin.View(page))
	}
	if err != nil {
		return err
	}
	if r.token() != "" {
		if err := h.doors.SignOut(r.ctx(), r.token()); err != nil {
			return err
		}
	}
	r.keep(sessionCookie, x.Token, 0)
	return r.seeOther(next)
}

func (h sessionPages) signOut(r *request) error {
	if err := h.doors.SignOut(r.ctx(), r.token()); err != nil {
		return err
	}
	r.keep(sessionCookie, "", -1)
	return r.seeOther(urls.Login)
}

func (h sessionPages) account(r *request) error {
	return r.change("account", func(account string) error {
		return h.views.LookAt(r.ctx(), r.session, services.AccountID(account))
	})
}

func (h sessionPages) region(r *request) error {
	return r.change("region", func(region string) error { return h.views.LookIn(r.ctx(), r.session, region) })
}

// locale changes the language, of the user where one is signed in.
func (h sessionPages) locale(r *request) error {
	return r.change("locale", func(locale string) error {
		if !i18n.Locale(locale).Valid() {
			return services.Invalid("locale", services.CodeInvalidValue, map[string]any{"Value": locale, "Allowed": "en, fr"})
		}
		r.keep(localeCookie, locale, preferenceLife)
		if !r.signedIn() {
			return nil
		}
		return h.views.SetLocale(r.ctx(), r.session, locale)
	})
}

func (h sessionPages) theme(r *request) error {
	return r.change("theme", func(theme string) error {
		if !layout.Theme(theme).Valid() {
			return services.Invalid("theme", services.CodeInvalidValue, map[string]any{"Value": theme, "Allowed": "system, light, dark"})
		}
		r.keep(themeCookie, theme, preferenceLife)
		return nil
	})
}

// change applies one field of a switch, and leads back to the page it stands on.
func (r *request) change(field string, apply func(value string) error) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	if err := apply(f.Get(field)); err != nil {
		return err
	}
	return r.seeOther(local(f.Get("back")))
}
