package urls

import (
	"net/url"
	"strconv"
)

// CatalogQuery filters and compares the catalogue's models.
type CatalogQuery struct {
	Region       string
	Memory       string // least GPU memory in GB
	Architecture string
	UseCase      string
	FreeNow      bool
	Compare      []string // model ids, at most four
}

// Values are the query's parameters, without the empty ones.
func (c CatalogQuery) Values() url.Values {
	q := url.Values{}
	set(q, "region", c.Region)
	set(q, "memory", c.Memory)
	set(q, "architecture", c.Architecture)
	set(q, "use_case", c.UseCase)
	if c.FreeNow {
		q.Set("free", "now")
	}
	for _, m := range c.Compare {
		q.Add("compare", m)
	}
	return q
}

// Catalog is the catalogue.
func Catalog(q CatalogQuery) string { return with("/catalog", q.Values()) }

// CatalogFragment is the catalogue's part that changes by itself.
func CatalogFragment(q CatalogQuery) string { return with("/fragments/catalog", q.Values()) }

// Model is a model's page.
func Model(id string) string { return "/catalog/" + url.PathEscape(id) }

// ModelFragment is the part of a model's page that changes by itself.
func ModelFragment(id string) string { return "/fragments/catalog/" + url.PathEscape(id) }

// ActivityQuery narrows and pages what happened.
type ActivityQuery struct {
	Kind   string // "gpu", "vm"; empty: all
	GPU    string
	VM     string
	Before int64 // the id of an event: what came before it
}

// Values are the query's parameters, without the empty ones.
func (a ActivityQuery) Values() url.Values {
	q := url.Values{}
	set(q, "kind", a.Kind)
	set(q, "gpu", a.GPU)
	set(q, "vm", a.VM)
	if a.Before > 0 {
		q.Set("before", strconv.FormatInt(a.Before, 10))
	}
	return q
}

// Activity is what happened in the account.
func Activity(q ActivityQuery) string { return with("/activity", q.Values()) }

// ActivityFragment is the list's part that changes by itself.
func ActivityFragment(q ActivityQuery) string { return with("/fragments/activity", q.Values()) }

// Search finds GPUs, VMs and models by name or id.
func Search(text string) string {
	q := url.Values{}
	set(q, "q", text)
	return with("/search", q)
}

// LoginThen is the sign-in page that leads on to a page.
func LoginThen(next string) string {
	q := url.Values{}
	if next != Home {
		set(q, "next", next)
	}
	return with(Login, q)
}
