// Package problem is the page that says what went wrong, and what to do.
package problem

import (
	"net/http"
	"strconv"

	"berth/services"
	"berth/web/components"
	"berth/web/layout"
)

// Page is the answer to a request that failed.
type Page struct {
	layout.Frame
	Shell     *layout.Shell // nil: nobody is signed in
	Status    int           // of HTTP
	Broken    []services.Violation
	RequestID string // to tell whoever runs the console
}

// told are the statuses with words of their own; others have those of their class.
var told = map[int]bool{
	http.StatusForbidden: true, http.StatusNotFound: true, http.StatusMethodNotAllowed: true, http.StatusConflict: true,
	http.StatusRequestEntityTooLarge: true, http.StatusUnsupportedMediaType: true, http.StatusUnprocessableEntity: true,
	http.StatusTooManyRequests: true, http.StatusServiceUnavailable: true,
}

// key begins the keys of the page's texts.
func (p Page) key() string { return "problem.status." + "s" + strconv.Itoa(p.worded()) }

// worded is the status whose words the page uses.
func (p Page) worded() int {
	switch {
	case told[p.Status]:
		return p.Status
	case p.Status < http.StatusInternalServerError:
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// ours reports whether the console is to blame, so that the request's number helps.
func (p Page) ours() bool { return p.Status >= http.StatusInternalServerError }

func (p Page) icon() components.Icon {
	switch {
	case p.ours():
		return components.IconWarning
	case p.Status == http.StatusNotFound:
		return components.IconSearch
	default:
		return components.IconBan
	}
}

// broken leaves out what the page's own words say already.
func (p Page) broken() []services.Violation {
	var out []services.Violation
	for _, v := range p.Broken {
		if v.Code != services.CodeNotFound && v.Code != services.CodeForbidden {
			out = append(out, v)
		}
	}
	return out
}
