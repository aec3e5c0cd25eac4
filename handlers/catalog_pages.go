package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/web/catalogue"
	"berth/web/urls"
)

// cataloguer answers what can be had, where, and how much of it an account may have.
type cataloguer interface {
	Catalogue(ctx context.Context) (compute.Catalogue, error)
	QuotaUses(ctx context.Context, account services.AccountID) ([]compute.QuotaUse, error)
}

// catalogPages show models.
type catalogPages struct{ catalog cataloguer }

func (s *site) catalog() catalogPages { return catalogPages{s.Compute} }

func (h catalogPages) list(r *request) error { return h.showList(r, catalogue.ListView) }

func (h catalogPages) listFragment(r *request) error { return h.showList(r, catalogue.ListFragment) }

// catalogQuery reads the filters, and which of the models to compare.
func catalogQuery(q url.Values, models []catalogue.Model) urls.CatalogQuery {
	out := urls.CatalogQuery{
		Region: q.Get("region"), Memory: q.Get("memory"), Architecture: q.Get("architecture"), UseCase: q.Get("use_case"),
		FreeNow: q.Get("free") != "",
	}
	for _, id := range q["compare"] {
		known := slices.ContainsFunc(models, func(m catalogue.Model) bool { return m.ID == id })
		if known && !slices.Contains(out.Compare, id) && len(out.Compare) < catalogue.MaxCompared {
			out.Compare = append(out.Compare, id)
		}
	}
	return out
}

func (h catalogPages) showList(r *request, view func(catalogue.List) templ.Component) error {
	shell, err := r.shell()
	if err != nil {
		return err
	}
	models, err := h.models(r)
	if err != nil {
		return err
	}
	l := catalogue.List{Shell: shell, Query: catalogQuery(r.QueryParams(), models), Total: len(models)}
	addChoices(&l, models)
	for _, m := range models {
		if slices.Contains(l.Query.Compare, m.ID) {
			l.Compared = append(l.Compared, m)
		}
		if m, ok := matching(m, l.Query); ok {
			l.Models = append(l.Models, m)
		}
	}
	return r.render(http.StatusOK, view(l))
}

// models puts the whole catalogue together for the account.
func (h catalogPages) models(r *request) ([]catalogue.Model, error) {
	c, err := h.catalog.Catalogue(r.ctx())
	if err != nil {
		return nil, err
	}
	uses, err := h.catalog.QuotaUses(r.ctx(), r.account())
	if err != nil {
		return nil, err
	}
	models := make([]catalogue.Model, 0, len(c.Models))
	for _, m := range c.Models {
		held, builtIn := heldOf(uses, m.ID)
		models = append(models, catalogue.Model{
			Held: held, BuiltIn: builtIn,
			ID: m.ID, Architecture: m.Architecture, Memory: m.Memory, VRAMMiB: m.VRAMMiB, INT8TOPS: m.INT8TOPS, UseCases: m.UseCases,
			ResourceName: m.ResourceName, DriverBranch: m.DriverBranch, Offers: offersOf(c, uses, m.ID), Types: typesWith(c.Types, m.ID),
		})
	}
	return models, nil
}

// heldOf counts an account's GPUs of a model in all regions.
func heldOf(uses []compute.QuotaUse, model string) (flexible, builtIn int) {
	for _, q := range uses {
		if q.Model == model {
			flexible += q.Used - q.BuiltIn
			builtIn += q.BuiltIn
		}
	}
	return flexible, builtIn
}

func offersOf(c compute.Catalogue, uses []compute.QuotaUse, model string) []catalogue.Offer {
	var offers []catalogue.Offer
	for _, o := range c.Offers {
		if o.Model != model {
			continue
		}
		offer := catalogue.Offer{
			Region: o.Region, MaxVCores: o.MaxVCores, MaxMemoryMiB: o.MaxMemoryMiB, Generations: o.Generations, HourlyPrice: o.HourlyPrice, Max: new(int),
		}
		for _, a := range c.Availability {
			if a.Model == model && a.Region == o.Region {
				offer.Zones = append(offer.Zones, catalogue.Zone{ID: a.Zone, Free: a.Free > 0})
			}
		}
		for _, q := range uses {
			if q.Model == model && q.Region == o.Region {
				offer.Used, offer.Max = q.Used, q.Max
			}
		}
		offers = append(offers, offer)
	}
	return offers
}

func typesWith(types catalog.Types, model string) []catalogue.Type {
	var with []catalogue.Type
	for _, t := range types {
		if t.GPUModel == model {
			with = append(with, catalogue.Type{Name: t.Name, VCores: t.VCores, MemoryMiB: t.MemoryMiB, GPUs: t.GPUCount, HourlyPrice: t.HourlyPrice})
		}
	}
	return with
}

// matching keeps a model that the filters let pass, with its offers in the
// region asked for.
func matching(m catalogue.Model, q urls.CatalogQuery) (catalogue.Model, bool) {
	if q.Region != "" {
		m.Offers = slices.DeleteFunc(slices.Clone(m.Offers), func(o catalogue.Offer) bool { return o.Region != q.Region })
		if len(m.Offers) == 0 {
			return m, false
		}
	}
	least, _ := strconv.Atoi(q.Memory) // no number is no filter
	return m, m.Memory.GB >= least &&
		(q.Architecture == "" || m.Architecture == q.Architecture) &&
		(q.UseCase == "" || slices.Contains(m.UseCases, q.UseCase)) &&
		(!q.FreeNow || m.FreeNow())
}

func addChoices(l *catalogue.List, models []catalogue.Model) {
	add := func(to *[]string, value string) {
		if value != "" && !slices.Contains(*to, value) {
			*to = append(*to, value)
		}
	}
	for _, m := range models {
		add(&l.Architectures, m.Architecture)
		for _, u := range m.UseCases {
			add(&l.UseCases, u)
		}
		for _, o := range m.Offers {
			add(&l.Regions, o.Region)
		}
		if gb := m.Memory.GB; gb > 0 && !slices.Contains(l.Memories, gb) {
			l.Memories = append(l.Memories, gb)
		}
	}
	slices.Sort(l.Architectures)
	slices.Sort(l.UseCases)
	slices.Sort(l.Regions)
	slices.Sort(l.Memories)
}

func (h catalogPages) page(r *request) error { return h.show(r, catalogue.View) }

func (h catalogPages) fragment(r *request) error { return h.show(r, catalogue.Fragment) }

func (h catalogPages) show(r *request, view func(catalogue.Page) templ.Component) error {
	shell, err := r.shell()
	if err != nil {
		return err
	}
	models, err := h.models(r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(models, func(m catalogue.Model) bool { return m.ID == r.Param("model") })
	if i < 0 {
		return services.NotFound("model", r.Param("model"))
	}
	return r.render(http.StatusOK, view(catalogue.Page{Shell: shell, Model: models[i]}))
}
