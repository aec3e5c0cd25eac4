package handlers

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"berth/services"
)

// maxForm bounds a browser's form, in bytes.
const maxForm = 1 << 20

// form is what was posted.
type form struct{ url.Values }

// form reads the body. One that is no form, or too large, is refused with a
// status of its own.
func (r *request) form() (form, error) {
	q := r.Request()
	kind := q.Header.Get(echo.HeaderContentType)
	if kind == "" && q.ContentLength == 0 {
		return form{}, nil
	}
	kind, _, err := mime.ParseMediaType(kind)
	switch {
	case err == nil && kind == echo.MIMEApplicationForm:
		err = q.ParseForm()
	case err == nil && kind == echo.MIMEMultipartForm:
		err = q.ParseMultipartForm(maxForm)
	default:
		return form{}, echo.ErrUnsupportedMediaType.WithInternal(err)
	}
	if err != nil {
		return form{}, unreadable(err)
	}
	if !textual(q.PostForm) {
		return form{}, echo.ErrBadRequest.WithInternal(errNotText)
	}
	return form{q.PostForm}, nil
}

var errNotText = errors.New("a field is not UTF-8 text")

func unreadable(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return echo.ErrStatusRequestEntityTooLarge.WithInternal(tooLarge)
	}
	return echo.ErrBadRequest.WithInternal(err)
}

// textual reports whether all names and values are text that a database takes.
func textual(v url.Values) bool {
	for name, values := range v {
		for _, text := range append(values, name) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return false
			}
		}
	}
	return true
}

func (f form) key() string { return f.Get("idempotency_key") }

// text is a field without the white space around it.
func (f form) text(name string) string { return strings.TrimSpace(f.Get(name)) }

// back is the page of the console that the form asks to come back to; without
// one, the given page.
func (f form) back(page string) string {
	if to := f.Get("back"); to != "" {
		return local(to)
	}
	return page
}

// flag reads a field of yes or no; none is no.
func (f form) flag(name string) (bool, error) { return flag(name, f.Get(name)) }

func flag(name, value string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "true", "on", "yes", "1":
		return true, nil
	case "", "false", "off", "no", "0":
		return false, nil
	}
	return false, services.Invalid(name, services.CodeInvalidValue, map[string]any{"Value": value, "Allowed": "true, false"})
}

// vm reads the field of a VM; an empty one is required.
func (f form) vm() (services.VMID, error) {
	text := f.text("vm")
	if text == "" {
		return "", services.Invalid("vm", services.CodeRequired, nil)
	}
	return services.ParseID[services.VMID](text)
}

// gpus reads the fields of several GPUs; none at all is required.
func (f form) gpus() ([]services.GPUID, error) {
	ids := make([]services.GPUID, 0, len(f.Values["gpu"]))
	for _, text := range f.Values["gpu"] {
		id, err := services.ParseID[services.GPUID](strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, services.Invalid("gpu", services.CodeRequired, nil)
	}
	return ids, nil
}

// pathID reads the object that the path is about.
func pathID[T services.ID](r *request) (T, error) { return services.ParseID[T](r.Param("id")) }
